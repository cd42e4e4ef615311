//! The plugins `hallucination` and `response_jailbreak`.
//!
//! It knows no other plugin. Source: contract §1.10.

use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{HallucinationSettings, JailbreakAction, Remark, ResponseJailbreakSettings};

const REMARKS: [(&str, Remark); 3] =
    [("header", Remark::Header), ("body", Remark::Body), ("none", Remark::None)];
const ACTIONS: [(&str, JailbreakAction); 3] =
    [("block", JailbreakAction::Block), ("header", JailbreakAction::Header), ("none", JailbreakAction::None)];

/// Reads `hallucination`; without a configuration it has its defaults.
pub(super) fn hallucination(at: Option<&Cursor<'_>>) -> HallucinationSettings {
    let Some(at) = at else { return HallucinationSettings::default() };
    let remark = |key| at.word(key, &REMARKS).unwrap_or_default();
    let settings = HallucinationSettings {
        by_meaning: at.boolean("use_nli").unwrap_or(false),
        unsupported: remark("hallucination_action"),
        unverified: remark("unverified_factual_action"),
        details: at.boolean("include_hallucination_details").unwrap_or(false),
    };
    if settings.details && settings.unsupported != Remark::Body {
        let named = at.get("include_hallucination_details");
        let text = "`include_hallucination_details` has an effect with `hallucination_action: body` only";
        named.as_ref().unwrap_or(at).warn(code::UNUSED, text);
    }
    settings
}

/// Reads `response_jailbreak`; without a configuration it has its defaults.
pub(super) fn response_jailbreak(at: Option<&Cursor<'_>>) -> ResponseJailbreakSettings {
    let Some(at) = at else { return ResponseJailbreakSettings::default() };
    ResponseJailbreakSettings {
        // As in the contract's engine, 0 is not set.
        threshold: at.float_in("threshold", 0.0, 1.0).filter(|it| *it > 0.0),
        action: at.word("action", &ACTIONS).unwrap_or_default(),
    }
}
