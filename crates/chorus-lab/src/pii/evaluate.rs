//! How much personal data is found, and how much of what is found is personal data.
//!
//! It knows findings and labels. A finding is right when kind and place are the labelled ones. **Invariant:** both halves
//! are measured by the same rule; only the held-out one is a claim.

use std::fmt::{self, Display};
use std::ops::Range;
use std::path::PathBuf;

use chorus_signals::pii::{Entity, Finding, find};

use super::corpus::{self, Half, Labelled};
use crate::fault::LabFault;

/// Kinds with a check digit, or a form that a pattern can know: what the bound is put on. An age, a postal code, a date,
/// a licence or a house number is a bare number or word that only its sentence makes one; they are in the table, not in the
/// bound.
const FORMED: [Entity; 7] = [
    Entity::CreditCard,
    Entity::IbanCode,
    Entity::UsSsn,
    Entity::EmailAddress,
    Entity::IpAddress,
    Entity::DomainName,
    Entity::PhoneNumber,
];
/// Kinds of the public set.
const KINDS: [Entity; 17] = [
    Entity::CreditCard,
    Entity::IbanCode,
    Entity::UsSsn,
    Entity::EmailAddress,
    Entity::IpAddress,
    Entity::DomainName,
    Entity::PhoneNumber,
    Entity::Person,
    Entity::Gpe,
    Entity::Organization,
    Entity::StreetAddress,
    Entity::Nrp,
    Entity::Title,
    Entity::Age,
    Entity::DateTime,
    Entity::ZipCode,
    Entity::UsDriverLicense,
];
/// Least score of a finding that counts: that of an uncertain name.
pub(super) const COUNTED_FROM: f64 = 0.5;
/// The signal's default threshold.
const STRICT: f64 = 0.9;

/// Measures the recognisers.
#[derive(Debug, Clone)]
pub struct EvalPii {
    /// Folder of the public datasets: `pii/`.
    pub data_dir: PathBuf,
}

/// Counts of one kind, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeFigures {
    /// Labelled places.
    pub labelled: usize,
    /// Findings.
    pub found: usize,
    /// Findings whose kind and place are labelled.
    pub right: usize,
    /// Labelled places that a finding of the kind touches.
    pub touched: usize,
}

impl TypeFigures {
    /// Share of labelled places that were found, 0..=1; 1 when there are none.
    #[must_use]
    pub fn recall(&self) -> f64 {
        ratio(self.right, self.labelled)
    }

    /// Share of findings that are right, 0..=1; 1 when there are none.
    #[must_use]
    pub fn precision(&self) -> f64 {
        ratio(self.right, self.found)
    }

    /// Harmonic mean of both.
    #[must_use]
    pub fn f1(&self) -> f64 {
        ratio(2 * self.right, self.labelled + self.found)
    }

    fn add(self, other: Self) -> Self {
        Self {
            labelled: self.labelled + other.labelled,
            found: self.found + other.found,
            right: self.right + other.right,
            touched: self.touched + other.touched,
        }
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct PiiReport {
    halves: Vec<(&'static str, usize, Vec<Row>)>,
}

#[derive(Debug, Clone)]
struct Row {
    entity: Entity,
    /// At the least score that counts, and at the signal's default threshold.
    counted: TypeFigures,
    strict: TypeFigures,
}

impl EvalPii {
    /// Measures both halves.
    ///
    /// # Errors
    /// [`LabFault`] when the data is absent or broken.
    pub fn run(&self) -> Result<PiiReport, LabFault> {
        let labelled = corpus::read(&self.data_dir)?;
        let half = |name, half| {
            let texts: Vec<&Labelled> = labelled.iter().filter(|text| text.half == half).collect();
            (name, texts.len(), measure(&texts))
        };
        Ok(PiiReport {
            halves: vec![
                ("development half", Half::Development),
                ("held-out half (its templates were never learnt from)", Half::HeldOut),
            ]
            .into_iter()
            .map(|(name, side)| half(name, side))
            .collect(),
        })
    }
}

fn measure(texts: &[&Labelled]) -> Vec<Row> {
    let found: Vec<Vec<Finding>> = texts.iter().map(|labelled| find(&labelled.text)).collect();
    let figures = |entity: Entity, least: f64| {
        let pairs = texts.iter().zip(&found);
        pairs.fold(TypeFigures::default(), |sum, (labelled, found)| {
            sum.add(compare(labelled, found, entity, least))
        })
    };
    KINDS
        .into_iter()
        .map(|entity| Row { entity, counted: figures(entity, COUNTED_FROM), strict: figures(entity, STRICT) })
        .collect()
}

/// Counts of one kind in one text.
pub(super) fn compare(labelled: &Labelled, found: &[Finding], entity: Entity, least: f64) -> TypeFigures {
    let found: Vec<Range<usize>> = found
        .iter()
        .filter(|finding| finding.entity == entity && finding.score >= least)
        .map(|finding| finding.start..finding.end)
        .collect();
    let wanted: Vec<&Range<usize>> =
        labelled.spans.iter().filter(|(kind, _)| *kind == entity).map(|(_, place)| place).collect();
    let touches = |place: &&&Range<usize>| found.iter().any(|f| f.start < place.end && place.start < f.end);
    TypeFigures {
        labelled: wanted.len(),
        found: found.len(),
        right: wanted.iter().filter(|place| found.contains(place)).count(),
        touched: wanted.iter().filter(touches).count(),
    }
}

impl PiiReport {
    /// Checksummed and patterned kinds together, in the held-out half, at the signal's default threshold.
    #[must_use]
    pub fn formed(&self) -> TypeFigures {
        self.halves.last().map(|(_, _, rows)| formed(rows, |row| row.strict)).unwrap_or_default()
    }
}

fn formed(rows: &[Row], pick: impl Fn(&Row) -> TypeFigures) -> TypeFigures {
    let rows = rows.iter().filter(|row| FORMED.contains(&row.entity));
    rows.fold(TypeFigures::default(), |sum, row| sum.add(pick(row)))
}

impl Display for PiiReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, counted: TypeFigures, strict: TypeFigures| {
            writeln!(
                f,
                "  {name:<34} {:>4}   {:.3}  {:.3}  {:.3}  {:.3}    {:.3}  {:.3}",
                counted.labelled,
                counted.precision(),
                counted.recall(),
                counted.f1(),
                ratio(counted.touched, counted.labelled),
                strict.precision(),
                strict.recall(),
            )
        };
        for (name, texts, rows) in &self.halves {
            writeln!(f, "{name}: {texts} texts")?;
            writeln!(
                f,
                "  {:<34}        from {COUNTED_FROM}: exact place          touched    from {STRICT}",
                ""
            )?;
            writeln!(f, "  {:<34} {:>4}   prec.  recall F1     recall     prec.  recall", "kind", "n")?;
            for row in rows {
                line(f, row.entity.name(), row.counted, row.strict)?;
            }
            line(
                f,
                "checksummed and patterned",
                formed(rows, |row| row.counted),
                formed(rows, |row| row.strict),
            )?;
        }
        let kinds: Vec<&str> = FORMED.iter().map(|entity| entity.name()).collect();
        writeln!(f, "checksummed and patterned kinds: {}", kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_count_kind_and_place() {
        let labelled = Labelled {
            text: String::new(),
            spans: vec![(Entity::Person, 0..3), (Entity::Person, 5..9), (Entity::Gpe, 10..12)],
            half: Half::HeldOut,
        };
        let finding = |entity, start, end, score| Finding { entity, start, end, score, recogniser: "test" };
        let found = [
            finding(Entity::Person, 0, 3, 0.9),
            finding(Entity::Person, 5, 8, 0.9),
            finding(Entity::Person, 10, 12, 0.4),
        ];
        let figures = compare(&labelled, &found, Entity::Person, 0.5);
        assert_eq!(figures, TypeFigures { labelled: 2, found: 2, right: 1, touched: 2 });
        assert_eq!((figures.recall(), figures.precision(), figures.f1()), (0.5, 0.5, 0.5));
        assert_eq!(compare(&labelled, &found, Entity::Gpe, 0.5).recall(), 0.0);
    }
}
