//! An order in which everything comes after what it needs, or the circle that forbids one.
//!
//! It knows numbers only: the caller names what they stand for.

/// Orders `0..needs.len()`; among free choices the lowest number goes first.
///
/// # Errors
/// A circle: each member needs the next, and the first stands again at the end.
pub(super) fn order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut state = vec![State::New; needs.len()];
    let mut done = Vec::with_capacity(needs.len());
    for start in 0..needs.len() {
        visit(start, needs, &mut state, &mut done)?;
    }
    Ok(done)
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

/// Depth first, with a stack of its own: the chain may be as long as the file.
fn visit(
    start: usize,
    needs: &[Vec<usize>],
    state: &mut [State],
    done: &mut Vec<usize>,
) -> Result<(), Vec<usize>> {
    let mut path: Vec<(usize, std::slice::Iter<'_, usize>)> = Vec::new();
    let mut next = Some(start);
    loop {
        if let Some(at) = next.take() {
            match state.get(at) {
                Some(State::New) => {
                    set(state, at, State::Open);
                    path.push((at, needs.get(at).map(|n| n.iter()).unwrap_or_default()));
                }
                Some(State::Open) => {
                    let circle = path.iter().map(|(node, _)| *node).skip_while(|node| *node != at);
                    return Err(circle.chain([at]).collect());
                }
                _ => {}
            }
        }
        let Some((at, rest)) = path.last_mut() else {
            return Ok(());
        };
        let at = *at;
        next = rest.next().copied();
        if next.is_none() {
            set(state, at, State::Done);
            done.push(at);
            path.pop();
        }
    }
}

fn set(state: &mut [State], at: usize, value: State) {
    if let Some(slot) = state.get_mut(at) {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_come_first() {
        assert_eq!(order(&[vec![2], vec![0], vec![]]), Ok(vec![2, 0, 1]));
        assert_eq!(order(&[]), Ok(vec![]));
    }

    #[test]
    fn a_circle_is_named_whole() {
        assert_eq!(order(&[vec![1], vec![2], vec![1]]), Err(vec![1, 2, 1]));
        assert_eq!(order(&[vec![0]]), Err(vec![0, 0]));
    }
}
