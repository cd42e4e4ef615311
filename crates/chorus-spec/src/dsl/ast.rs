//! Policy text as a tree that keeps what a formatter needs: comments, blank lines, and where everything stood.
//!
//! It knows no meaning: a field is a key and a value, whatever the key. **Invariant:** printing the tree and parsing
//! the print gives the same tree, places aside.

use super::token::Comment;
use crate::Place;

/// A whole file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) statements: Vec<Item<Statement>>,
    /// Comments after the last statement.
    pub(super) tail: Vec<Comment>,
}

/// Something that stands in a list or a block, with what people wrote around it.
#[derive(Debug)]
pub(super) struct Item<T> {
    pub(super) it: T,
    pub(super) around: Around,
}

impl<T> Item<T> {
    /// An item that nobody has commented.
    pub(super) fn bare(it: T) -> Self {
        Self { it, around: Around::default() }
    }
}

/// Comments and blank lines around an item.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Comments above it.
    pub(super) above: Vec<Comment>,
    /// Whether a blank line separates it from what stands above (from its comments, if it has any).
    pub(super) gap: bool,
    /// The comment behind it on its last line.
    pub(super) behind: Option<Comment>,
}

/// What stands between brackets.
#[derive(Debug)]
pub(super) struct Body<T> {
    pub(super) items: Vec<Item<T>>,
    /// Comments before the closing bracket.
    pub(super) tail: Vec<Comment>,
}

impl<T> Default for Body<T> {
    fn default() -> Self {
        Self { items: Vec::new(), tail: Vec::new() }
    }
}

impl<T> Body<T> {
    /// A body that nobody has commented.
    pub(super) fn of(items: Vec<T>) -> Self {
        Self { items: items.into_iter().map(Item::bare).collect(), tail: Vec::new() }
    }

    /// Its items, without what stands around them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|item| &item.it)
    }

    /// Whether it has neither items nor comments.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.tail.is_empty()
    }
}

/// A name, a number or a text, as written.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) place: Place,
    /// Whether it stood in quotes; only a bare one can be a number, a truth value or null.
    pub(super) quoted: bool,
}

/// `key: value`.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: Word,
    pub(super) value: Value,
}

/// What stands behind a key.
#[derive(Debug)]
pub(super) enum Value {
    One(Word),
    List(Place, Body<Value>),
    Map(Place, Body<Field>),
}

/// `key: value` pairs in braces.
pub(super) type Fields = Body<Field>;

/// One top-level block.
#[derive(Debug)]
pub(super) struct Statement {
    /// Where its keyword stands.
    pub(super) place: Place,
    pub(super) kind: StatementKind,
}

/// What a block is.
#[derive(Debug)]
pub(super) enum StatementKind {
    Routing(Fields),
    Model { name: Word, fields: Fields },
    Signal { family: Word, name: Word, fields: Fields },
    Projection { kind: Word, name: Word, fields: Fields },
    Plugin { name: Word, kind: Word, fields: Fields },
    Route(Route),
    Tree(Tree),
    Entrypoint(Fields),
    Recipe(Recipe),
    Test { name: Word, cases: Body<Case> },
}

/// A route, or a branch of a tree.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) name: Word,
    /// `(description = "…")`.
    pub(super) attributes: Vec<Field>,
    pub(super) clauses: Body<Clause>,
}

/// `IF … ELSE IF … ELSE …`.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) name: Word,
    pub(super) attributes: Vec<Field>,
    pub(super) branches: Vec<Item<Branch>>,
    pub(super) tail: Vec<Comment>,
}

/// One branch; without a condition it is the last resort.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) place: Place,
    /// Whether it begins with `ELSE`.
    pub(super) is_else: bool,
    pub(super) condition: Option<Expression>,
    pub(super) clauses: Body<Clause>,
}

/// An isolated policy beside the default one.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) name: Word,
    pub(super) attributes: Vec<Field>,
    pub(super) body: Body<Statement>,
}

/// `"query" -> route`.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) query: Word,
    pub(super) route: Word,
}

/// One line of a route.
#[derive(Debug)]
pub(super) struct Clause {
    /// Where its first word stands.
    pub(super) place: Place,
    pub(super) kind: ClauseKind,
}

/// What a line of a route says.
#[derive(Debug)]
pub(super) enum ClauseKind {
    Name(Word),
    Description(Word),
    Priority(Word),
    Tier(Word),
    When(Expression),
    Models(Vec<Item<Candidate>>),
    Algorithm {
        kind: Word,
        fields: Option<Fields>,
    },
    Plugin {
        name: Word,
        fields: Option<Fields>,
    },
    For(Iteration),
    Emit {
        kind: Word,
        fields: Fields,
    },
    /// A key of the contract that has no clause of its own.
    Raw(Field),
}

/// One model of a route, with its options.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) model: Word,
    pub(super) options: Vec<Field>,
}

/// `FOR variable IN source { MODEL variable }`.
#[derive(Debug)]
pub(super) struct Iteration {
    pub(super) variable: Word,
    pub(super) source: IterationSource,
    /// What each round gives.
    pub(super) models: Vec<Word>,
}

/// What an iteration goes over.
#[derive(Debug)]
pub(super) enum IterationSource {
    /// `decision.candidates`.
    Named(Word),
    /// The models in brackets.
    Models(Vec<Item<Candidate>>),
}

/// A boolean rule, grouped as written.
#[derive(Debug)]
pub(super) enum Expression {
    Leaf(Leaf),
    Not(Place, Box<Expression>),
    And(Place, Vec<Expression>),
    Or(Place, Vec<Expression>),
}

/// `family("name", key: value)`.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) family: Word,
    pub(super) name: Word,
    pub(super) options: Vec<Field>,
}
