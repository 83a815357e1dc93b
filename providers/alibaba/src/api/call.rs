//! An action with its parameters, as data: plans make them, tests compare them.

/// An API of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// As its host begins.
    pub name: &'static str,
    /// Version of the API.
    pub version: &'static str,
    /// Whether parameters are in the body rather than in the query, as the cloud's SDK sends them.
    pub in_body: bool,
}

/// Instances.
pub const ECS: Product = Product::new("ecs", "2014-05-26", false);
/// Routes.
pub const VPC: Product = Product::new("vpc", "2016-04-28", false);
/// Classic Load Balancers.
pub const SLB: Product = Product::new("slb", "2014-05-15", false);
/// Network Load Balancers.
pub const NLB: Product = Product::new("nlb", "2022-04-30", true);

impl Product {
    const fn new(name: &'static str, version: &'static str, in_body: bool) -> Self {
        Self { name, version, in_body }
    }
}

/// An action that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which API it is of.
    pub product: Product,
    /// Which one it is.
    pub action: &'static str,
    /// Names and values.
    pub parameters: Vec<(String, String)>,
}

impl Call {
    /// Without parameters.
    pub fn new(product: Product, action: &'static str) -> Self {
        Self {
            product,
            action,
            parameters: Vec::new(),
        }
    }

    /// Adds a parameter. Those in lists are `Name.1`, those of an object in a list `Name.1.Field`.
    pub fn field(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.parameters.push((name.into(), value.to_string()));
        self
    }

    /// Adds a parameter if there is a value.
    pub fn opt(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds a list.
    pub fn list<T: ToString>(self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter().enumerate();
        values.fold(self, |call, (at, value)| {
            call.field(format!("{name}.{}", at + 1), value)
        })
    }

    /// Adds tags.
    pub fn tags(self, tags: &[(String, String)]) -> Self {
        let tags = tags.iter().enumerate();
        tags.fold(self, |call, (at, (key, value))| {
            let call = call.field(format!("Tag.{}.Key", at + 1), key);
            call.field(format!("Tag.{}.Value", at + 1), value)
        })
    }

    /// All of it for messages: `DeleteListener ListenerId=7`.
    pub fn text(&self) -> String {
        let parameters = self.parameters.iter();
        parameters.fold(self.action.to_owned(), |text, (name, value)| {
            format!("{text} {name}={value}")
        })
    }
}
