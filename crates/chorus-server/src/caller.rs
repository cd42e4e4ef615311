//! Who makes a request, as far as somebody vouches for it.
//!
//! **Invariant:** a header is identity only where the configuration says that a proxy in front sets it (case E07).

use crate::door::Door;
use crate::guard;
use chorus_engine::{Caller, Voucher};
use chorus_spec::Identity;
use http::HeaderMap;
use std::sync::Arc;

/// The caller whom a request's key or token names, as the guard before every handler found it; else the one that a trusted
/// proxy names.
pub(crate) fn of(door: &Door, headers: &HeaderMap) -> Option<Arc<Caller>> {
    guard::caller().or_else(|| caller(&door.engine.serving().spec.global.identity, headers))
}

/// The caller that a trusted proxy's headers name; nobody where no proxy is trusted.
pub(crate) fn caller(identity: &Identity, headers: &HeaderMap) -> Option<Arc<Caller>> {
    if !identity.trusted {
        return None;
    }
    let values = |name: &str| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let mut users = values(&identity.user_id_header);
    // Two ids are one too many: the proxy did not strip the client's own.
    let (user, None) = (users.next()?, users.next()) else {
        return None;
    };
    let groups = values(&identity.user_groups_header)
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|group| !group.is_empty())
        .map(str::to_owned)
        .collect();
    Caller::new(user, groups, Voucher::TrustedProxy).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(trusted: bool, pairs: &[(&'static str, &'static str)]) -> Option<(String, Vec<String>)> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        let identity = Identity { trusted, ..Identity::default() };
        caller(&identity, &headers).map(|it| (it.user().to_owned(), it.groups().to_vec()))
    }

    #[test]
    fn e07_a_client_s_own_header_is_never_identity() {
        let ada = [("x-authz-user-id", "ada"), ("x-authz-user-groups", "staff, admins,")];
        assert_eq!(named(false, &ada), None);
        let groups = vec!["staff".to_owned(), "admins".to_owned()];
        assert_eq!(named(true, &ada), Some(("ada".to_owned(), groups)));
        assert_eq!(named(true, &[("x-authz-user-id", "ada"), ("x-authz-user-id", "root")]), None);
        assert_eq!(named(true, &[("x-authz-user-groups", "admins")]), None);
        assert_eq!(named(true, &[("x-user", "ada")]), None);
    }
}
