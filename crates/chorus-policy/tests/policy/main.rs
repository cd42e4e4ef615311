//! The policy through its public door: cases, projections by hand, and laws over random recipes.

#[cfg(test)]
mod decisions;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod projections;
#[cfg(test)]
mod recipes;
