//! L-BFGS: minimises a smooth function of many variables.
//!
//! It knows no data. Invariant: the value never rises from one step to the next. Source: Nocedal and Wright 2006,
//! "Numerical Optimization", algorithms 7.4 and 7.5, with backtracking to the Armijo condition (3.4).

use std::collections::VecDeque;

/// Pairs of steps and gradient changes that are remembered.
const MEMORY: usize = 10;
/// Share of the expected decrease that a step has to bring. Source: Nocedal and Wright, §3.1.
const ARMIJO: f64 = 1e-4;
/// Halvings of a step before the search gives up.
const HALVINGS: usize = 30;

/// One remembered step.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    inverse_curvature: f64,
}

/// Minimises `objective`, which returns value and gradient, from `start`; stops after `iterations`, or when the
/// gradient's largest entry is below `tolerance`, or when no step along the search direction helps.
pub(crate) fn minimise(
    start: Vec<f64>,
    iterations: usize,
    tolerance: f64,
    mut objective: impl FnMut(&[f64]) -> (f64, Vec<f64>),
) -> Vec<f64> {
    let mut point = start;
    let (mut value, mut gradient) = objective(&point);
    let mut memory: VecDeque<Pair> = VecDeque::with_capacity(MEMORY);
    for _ in 0..iterations {
        if gradient.iter().all(|entry| entry.abs() < tolerance) {
            break;
        }
        let direction = search_direction(&gradient, &memory);
        let slope = dot(&direction, &gradient);
        let mut length = if memory.is_empty() { 1.0 / norm(&gradient).max(1.0) } else { 1.0 };
        let mut found = None;
        for _ in 0..HALVINGS {
            let next: Vec<f64> = point.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let (next_value, next_gradient) = objective(&next);
            if next_value <= value + ARMIJO * length * slope {
                found = Some((next, next_value, next_gradient));
                break;
            }
            length /= 2.0;
        }
        let Some((next, next_value, next_gradient)) = found else {
            break;
        };
        remember(&mut memory, difference(&next, &point), difference(&next_gradient, &gradient));
        (point, value, gradient) = (next, next_value, next_gradient);
    }
    point
}

/// Keeps a pair whose curvature is positive, which the inverse Hessian's estimate needs.
fn remember(memory: &mut VecDeque<Pair>, step: Vec<f64>, change: Vec<f64>) {
    let curvature = dot(&step, &change);
    if curvature > 1e-12 {
        if memory.len() == MEMORY {
            memory.pop_front();
        }
        memory.push_back(Pair { step, change, inverse_curvature: 1.0 / curvature });
    }
}

/// The two-loop recursion.
fn search_direction(gradient: &[f64], memory: &VecDeque<Pair>) -> Vec<f64> {
    let mut direction = gradient.to_vec();
    let mut factors = Vec::with_capacity(memory.len());
    for pair in memory.iter().rev() {
        let factor = pair.inverse_curvature * dot(&pair.step, &direction);
        add_scaled(&mut direction, -factor, &pair.change);
        factors.push(factor);
    }
    if let Some(last) = memory.back() {
        let scale = 1.0 / (last.inverse_curvature * dot(&last.change, &last.change));
        direction.iter_mut().for_each(|entry| *entry *= scale);
    }
    for (pair, factor) in memory.iter().zip(factors.into_iter().rev()) {
        let correction = pair.inverse_curvature * dot(&pair.change, &direction);
        add_scaled(&mut direction, factor - correction, &pair.step);
    }
    direction.iter_mut().for_each(|entry| *entry = -*entry);
    direction
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn difference(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(left, right)| left - right).collect()
}

fn add_scaled(target: &mut [f64], factor: f64, source: &[f64]) {
    target.iter_mut().zip(source).for_each(|(target, source)| *target += factor * source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quadratic_is_solved_exactly() {
        let found = minimise(vec![0.0; 3], 50, 1e-9, |x| {
            let scaled = [x[0] - 1.0, 10.0 * (x[1] + 2.0), 100.0 * (x[2] - 0.5)];
            let value = scaled[0] * (x[0] - 1.0) + scaled[1] * (x[1] + 2.0) + scaled[2] * (x[2] - 0.5);
            (value / 2.0, scaled.to_vec())
        });
        for (found, expected) in found.iter().zip([1.0, -2.0, 0.5]) {
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
    }

    /// Source: Rosenbrock 1960; the minimum of its curved valley is (1, 1).
    #[test]
    fn rosenbrock_valley_is_followed_to_its_end() {
        let found = minimise(vec![-1.2, 1.0], 200, 1e-8, |x| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            (a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
        });
        assert!((found[0] - 1.0).abs() < 1e-5 && (found[1] - 1.0).abs() < 1e-5, "{found:?}");
    }
}
