//! A command with its parameters, as data: plans make them, tests compare them.

/// A command that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    command: &'static str,
    parameters: Vec<(String, String)>,
}

impl Call {
    /// Without parameters.
    pub fn new(command: &'static str) -> Self {
        Self {
            command,
            parameters: vec![("command".into(), command.into())],
        }
    }

    /// Adds a parameter.
    pub fn field(mut self, name: &str, value: impl ToString) -> Self {
        self.parameters.push((name.into(), value.to_string()));
        self
    }

    /// Adds a parameter if there is a value.
    pub fn opt(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds a list, as CloudStack takes it: with commas between.
    pub fn list(self, name: &str, values: &[String]) -> Self {
        self.field(name, values.join(","))
    }

    /// Which one it is.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// Names and values, the command among them.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// All of it for messages: `deleteFirewallRule id=7`.
    pub fn text(&self) -> String {
        let rest = self.parameters.iter().skip(1);
        rest.fold(self.command.to_owned(), |text, (name, value)| {
            format!("{text} {name}={value}")
        })
    }
}
