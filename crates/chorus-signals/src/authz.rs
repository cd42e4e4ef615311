//! `authz`: whether the caller holds a role.
//!
//! *Measures:* whether the caller is a user, or in a group, to whom the role is bound.
//! *Inputs:* the caller's identity, as a trusted proxy or an API key established it; no header of the client's own.
//! *Cost:* 0, comparing names
//! *Fails when:* nobody vouched for the caller: then it is absent, or unmatched where `authz.fail_open` is set.
//! *Source:* contract §1.4 (`role_bindings`); case E07.
//!
//! A rule emits its role, not its own name. Several bindings may give one role: any of them suffices, so the family is
//! judged together. Names are compared as written. **Invariant:** a role never matches without an identity.

use crate::caller::Caller;
use crate::doc::SignalDoc;
use crate::measure::{Look, Measure};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, Recipe, RoleSubject, SignalKey, SignalKind};
use std::collections::BTreeMap;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Authz,
    measures: "whether the caller is a user, or in a group, to whom the role is bound.",
    inputs: "the caller's identity, as a trusted proxy or an API key established it; no header of the client's own.",
    cost: 0,
    fails_when: "nobody vouched for the caller: then it is absent, or unmatched where `authz.fail_open` is set.",
    source: "contract §1.4 (`role_bindings`); case E07.",
};

/// All role bindings of a recipe, by role.
#[derive(Debug)]
pub(crate) struct Roles {
    roles: BTreeMap<SignalKey, Vec<RoleSubject>>,
    fail_open: bool,
}

impl Roles {
    pub(crate) fn prepare(recipe: &Recipe, fail_open: bool) -> Self {
        let mut roles: BTreeMap<_, Vec<RoleSubject>> = BTreeMap::new();
        for signal in &recipe.signals {
            if let SignalKind::Authz(binding) = &signal.kind {
                let key = SignalKey::new(Family::Authz, &binding.role);
                roles.entry(key).or_default().extend(binding.subjects.iter().cloned());
            }
        }
        Self { roles, fail_open }
    }

    fn judge(&self, subjects: &[RoleSubject], caller: Option<&Caller>) -> Observation {
        match caller {
            Some(caller) if subjects.iter().any(|subject| is(caller, subject)) => {
                Observation::Matched { confidence: 1.0, raw: None }
            }
            None if !self.fail_open => Observation::Absent(AbsentReason::Failed(
                "nobody vouched for the caller's identity".to_owned(),
            )),
            _ => Observation::Unmatched { raw: None },
        }
    }
}

impl Measure for Roles {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        for (key, subjects) in &self.roles {
            evidence.insert(key.clone(), self.judge(subjects, look.subject.caller()));
        }
    }
}

fn is(caller: &Caller, subject: &RoleSubject) -> bool {
    match subject {
        RoleSubject::User(user) => caller.user() == user,
        RoleSubject::Group(group) => caller.groups().contains(group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Voucher;
    use crate::fake;
    use crate::subject::Subject;
    use chorus_spec::AuthzSignal;
    use chorus_wire::ChatRequest;

    fn roles(fail_open: bool) -> Roles {
        let binding = |name: &str, role: &str, subject: RoleSubject| {
            let binding = AuthzSignal { role: role.to_owned(), subjects: vec![subject] };
            fake::signal(name, SignalKind::Authz(binding))
        };
        let signals = vec![
            binding("by-name", "admin", RoleSubject::User("ada".to_owned())),
            binding("by-group", "admin", RoleSubject::Group("platform".to_owned())),
            binding("readers", "reader", RoleSubject::Group("staff".to_owned())),
        ];
        Roles::prepare(&Recipe { signals, ..Recipe::default() }, fail_open)
    }

    fn of(roles: &Roles, subject: &Subject<'_>, role: &str) -> Observation {
        fake::measured(roles, None, subject).get(&SignalKey::new(Family::Authz, role)).cloned().unwrap()
    }

    #[test]
    fn any_binding_of_a_role_suffices() {
        let request = ChatRequest::new("m", Vec::new());
        for (user, groups, admin, reader) in [
            ("ada", vec![], true, false),
            ("bob", vec!["platform"], true, false),
            ("bob", vec!["staff", "platform"], true, true),
            ("Ada", vec!["Platform"], false, false),
        ] {
            let groups = groups.into_iter().map(str::to_owned).collect();
            let caller = Caller::new(user, groups, Voucher::ApiKey).unwrap();
            let subject = Subject::of(&request).with_caller(Some(&caller));
            for (role, want) in [("admin", admin), ("reader", reader)] {
                let got = of(&roles(false), &subject, role);
                assert_eq!(matches!(got, Observation::Matched { .. }), want, "{user} {role}");
            }
        }
    }

    #[test]
    fn e07_without_an_established_identity_no_role_is_held() {
        // What a client writes into its own body is no identity either.
        let body = br#"{"model":"m","user":"ada","metadata":{"x-authz-user-id":"ada"},
            "messages":[{"role":"user","content":"I am ada"}]}"#;
        let request = ChatRequest::parse(body, &Default::default()).unwrap();
        let subject = Subject::of(&request);
        assert!(matches!(of(&roles(false), &subject, "admin"), Observation::Absent(AbsentReason::Failed(_))));
        assert_eq!(of(&roles(true), &subject, "admin"), Observation::Unmatched { raw: None });
    }
}
