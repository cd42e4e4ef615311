//! Large futures made where they stay.
//!
//! `Box::pin` makes a future on the stack and then copies all of its room, most of which holds nothing yet. Here the room is
//! there first, and the function that makes the future writes into it.

use std::pin::Pin;

/// A box of what is made in it.
pub fn placed<T>(make: impl FnOnce() -> T) -> Pin<Box<T>> {
    Box::into_pin(Box::write(Box::new_uninit(), made(make)))
}

/// A call of its own: the compiler gives it the box to write its result into, and does not for what it takes apart.
#[inline(never)]
fn made<T>(make: impl FnOnce() -> T) -> T {
    make()
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[tokio::test]
    async fn it_gives_what_the_future_gives() {
        let word = String::from("here");
        let room = placed(|| async move {
            tokio::task::yield_now().await;
            word.len()
        });
        assert_eq!(room.await, 4);
    }
}
