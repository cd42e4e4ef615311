//! The watch on the file: whatever way a program changes it, the new text is served, and a bad one is not.

use crate::house::{House, broken, policy};
use chorus_engine::reload::{State, watch};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// Short, because these tests write whole files.
const QUIET: Duration = Duration::from_millis(20);

/// The next state that fits.
async fn until(house: &House, fits: impl FnMut(&Arc<State>) -> bool) -> Arc<State> {
    let mut state = house.configuration.subscribe();
    let found = tokio::time::timeout(Duration::from_secs(30), state.wait_for(fits)).await;
    Arc::clone(&found.expect("the watch noticed nothing").unwrap())
}

#[tokio::test]
async fn a_file_is_served_again_however_it_is_changed() {
    let house = House::open(&policy("gen-1")).await;
    let _watching = watch(Arc::clone(&house.configuration), QUIET).unwrap().unwrap();
    // In place.
    fs::write(&house.file, policy("gen-2")).unwrap();
    until(&house, |state| state.generation == 2).await;
    // As editors do: a new file is renamed into its place, twice, so that the first watch would be on a dead file.
    for generation in [3, 4] {
        let fresh = house.folder.path().join(".policy.yaml.swp");
        fs::write(&fresh, policy(&format!("gen-{generation}"))).unwrap();
        fs::rename(&fresh, &house.file).unwrap();
        until(&house, |state| state.generation == generation).await;
    }
    // As other editors do: the old one is moved away first.
    fs::rename(&house.file, house.folder.path().join("policy.yaml~")).unwrap();
    fs::write(&house.file, policy("gen-5")).unwrap();
    until(&house, |state| state.digest == chorus_spec::Digest::of(policy("gen-5").as_bytes())).await;
}

#[tokio::test]
async fn c11_a_bad_file_is_refused_once_and_a_mended_one_is_no_news() {
    let house = House::open(&policy("gen-1")).await;
    let _watching = watch(Arc::clone(&house.configuration), QUIET).unwrap().unwrap();
    fs::write(&house.file, broken()).unwrap();
    let refused = until(&house, |state| state.last.refused.is_some()).await;
    assert_eq!(refused.generation, 1);
    fs::write(&house.file, policy("gen-1")).unwrap();
    let mended = until(&house, |state| state.last.refused.is_none()).await;
    assert_eq!(mended.generation, 1, "what is served did not change");
    fs::write(&house.file, policy("gen-2")).unwrap();
    until(&house, |state| state.generation == 2).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_mounted_volume_swaps_a_link_above_the_file() {
    let house = House::open(&policy("gen-1")).await;
    let folder = house.folder.path();
    for generation in ["1", "2"] {
        fs::create_dir(folder.join(generation)).unwrap();
        fs::write(folder.join(generation).join("policy.yaml"), policy(&format!("gen-{generation}"))).unwrap();
    }
    std::os::unix::fs::symlink("1", folder.join("data")).unwrap();
    fs::remove_file(&house.file).unwrap();
    std::os::unix::fs::symlink("data/policy.yaml", &house.file).unwrap();
    let _watching = watch(Arc::clone(&house.configuration), QUIET).unwrap().unwrap();
    std::os::unix::fs::symlink("2", folder.join("fresh")).unwrap();
    fs::rename(folder.join("fresh"), folder.join("data")).unwrap();
    until(&house, |state| state.generation == 2).await;
}
