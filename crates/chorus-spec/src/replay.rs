//! The `router_replay` plugin: what of a conversation is kept in the run's record.
//!
//! Plain data of the file. Source: contract §1.10.

/// What of a conversation is kept in the run's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySettings {
    /// Most records of the route that keep bodies; older ones lose theirs. Default 10,000.
    pub max_records: u64,
    /// Whether the request's body is kept; default true.
    pub request_body: bool,
    /// Whether the answer's body is kept; default true.
    pub response_body: bool,
    /// Most bytes of each body; default 4,096.
    pub max_body_bytes: usize,
    /// Most bytes of the trace of tools; 0, the default, is no bound besides the steps'.
    pub max_tool_trace_bytes: usize,
    /// Most steps of the trace of tools; default 100.
    pub max_tool_trace_steps: usize,
}

impl Default for ReplaySettings {
    fn default() -> Self {
        Self {
            max_records: 10_000,
            request_body: true,
            response_body: true,
            max_body_bytes: 4096,
            max_tool_trace_bytes: 0,
            max_tool_trace_steps: 100,
        }
    }
}
