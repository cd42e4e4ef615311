//! `system_prompt`: an operator's system message in front of the conversation.
//!
//! `replace` (default) takes the place of the client's first system message; `insert` goes in front of its text.
//! A `developer` message of the client stays where it is: it ranks below the operator's system message.
//! Source: contract §1.10.

use chorus_spec::{SystemPrompt, SystemPromptMode};
use chorus_wire::{ChatRequest, Message, Role};

/// Puts the prompt in.
pub fn apply(prompt: &SystemPrompt, request: &mut ChatRequest) {
    if prompt.text.is_empty() {
        return;
    }
    let mut messages = request.messages().to_vec();
    let client = messages.iter().position(|m| m.role == Role::System).map(|at| messages.remove(at));
    let text = match (prompt.mode, client) {
        (SystemPromptMode::Insert, Some(client)) => format!("{}\n\n{}", prompt.text, client.text),
        _ => prompt.text.clone(),
    };
    messages.insert(0, Message::new(Role::System, &text));
    request.set_messages(messages);
}

/// Adds a paragraph at the end of the operator's or client's system message; it becomes one where there is none.
pub fn append(paragraph: &str, request: &mut ChatRequest) {
    let mut messages = request.messages().to_vec();
    match messages.iter_mut().find(|m| m.role == Role::System) {
        Some(system) => *system = Message::new(Role::System, &format!("{}\n\n{paragraph}", system.text)),
        None => messages.insert(0, Message::new(Role::System, paragraph)),
    }
    request.set_messages(messages);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(mode: SystemPromptMode, messages: &[(Role, &str)]) -> Vec<(Role, String)> {
        let messages = messages.iter().map(|(role, text)| Message::new(role.clone(), text)).collect();
        let mut request = ChatRequest::new("m", messages);
        apply(&SystemPrompt { text: "operator".into(), mode }, &mut request);
        request.messages().iter().map(|m| (m.role.clone(), m.text.clone())).collect()
    }

    #[test]
    fn replace_takes_the_place_of_the_clients_system_message() {
        let got = after(SystemPromptMode::Replace, &[(Role::System, "client"), (Role::User, "hi")]);
        assert_eq!(got, [(Role::System, "operator".into()), (Role::User, "hi".into())]);
    }

    #[test]
    fn insert_goes_in_front_of_it() {
        let got = after(SystemPromptMode::Insert, &[(Role::System, "client"), (Role::User, "hi")]);
        assert_eq!(got, [(Role::System, "operator\n\nclient".into()), (Role::User, "hi".into())]);
    }

    #[test]
    fn e12_a_developer_message_keeps_its_place_below_the_operator() {
        let got = after(SystemPromptMode::Replace, &[(Role::Developer, "client"), (Role::User, "hi")]);
        assert_eq!(got[0], (Role::System, "operator".into()));
        assert_eq!(got[1], (Role::Developer, "client".into()));
    }
}
