//! `chorus policy graph FILE`: signals → scores → bands → decisions → models, as one SVG.
//!
//! Built in three steps, each a plain value: what is shown, where it stands, how it is written. It knows no other
//! format. **Invariant:** the same policy gives the same picture, byte for byte.

mod picture;
mod place;
mod svg;

use chorus_spec::Recipe;

/// The picture of a recipe.
pub(super) fn draw(recipe: &Recipe) -> String {
    let picture = picture::picture(recipe);
    let placed = place::place(&picture);
    let name = if recipe.description.is_empty() {
        recipe.name.clone()
    } else {
        format!("{}: {}", recipe.name, recipe.description)
    };
    svg::svg(&name, &picture, &placed)
}

#[cfg(test)]
mod tests {
    use super::picture::{Bearing, Column};
    use super::*;

    const POLICY: &str = r#"
MODEL small {}
MODEL large {}
MODEL judge {}
SIGNAL keyword code { keywords: ["fn <main>", "a & b"] }
SIGNAL keyword brief { keywords: ["short"] }
SIGNAL context long { min_tokens: "8K", max_tokens: "1M" }
PROJECTION score effort {
  method: "weighted_sum"
  inputs: [{ type: "keyword", name: "brief", weight: -0.5 }, { type: "context", name: "long", weight: 0.5 }]
}
PROJECTION mapping effort_band {
  source: "effort"
  method: "threshold_bands"
  outputs: [{ name: "easy", lt: 0.3 }, { name: "hard", gte: 0.3 }]
}
ROUTE deep {
  PRIORITY 20
  WHEN projection("hard") AND NOT keyword("brief")
  MODEL "large", "small"
  ALGORITHM fusion { analysis_models: ["large", "small"], model: "judge" }
}
ROUTE rest { PRIORITY 1 MODEL "small" }
"#;

    fn recipe() -> Recipe {
        let reading = chorus_spec::dsl::read(POLICY, None);
        let said: String = reading.diagnostics.iter().map(|d| d.render("p", POLICY)).collect();
        let spec = reading.spec.unwrap_or_else(|| panic!("{said}"));
        spec.recipes.into_iter().next().expect("a policy has the default recipe")
    }

    #[test]
    fn an_edge_stands_for_every_use_and_nothing_else() {
        let picture = picture::picture(&recipe());
        let label = |at: usize| picture.nodes[at].label.as_str();
        let edges: Vec<(&str, &str, Bearing)> =
            picture.edges.iter().map(|edge| (label(edge.from), label(edge.to), edge.bearing)).collect();
        assert_eq!(
            edges,
            [
                ("effort", "easy", Bearing::For),
                ("effort", "hard", Bearing::For),
                ("brief", "effort", Bearing::Against),
                ("long", "effort", Bearing::For),
                ("hard", "deep", Bearing::For),
                ("brief", "deep", Bearing::Against),
                ("deep", "large", Bearing::For),
                ("deep", "small", Bearing::For),
                ("deep", "judge", Bearing::For),
                ("rest", "small", Bearing::For),
            ]
        );
    }

    #[test]
    fn boxes_of_a_column_do_not_overlap_and_lie_within_the_drawing() {
        let picture = picture::picture(&recipe());
        let placed = place::place(&picture);
        for column in Column::ALL {
            let mut areas: Vec<_> = picture
                .nodes
                .iter()
                .zip(&placed.boxes)
                .filter(|(node, _)| node.column == column)
                .map(|(_, area)| *area)
                .collect();
            areas.sort_by(|a, b| a.y.total_cmp(&b.y));
            assert!(areas.windows(2).all(|pair| pair[0].y + pair[0].height <= pair[1].y), "{areas:?}");
            assert!(
                areas
                    .iter()
                    .all(|area| area.right() <= placed.width && area.y + area.height <= placed.height)
            );
        }
    }

    #[test]
    fn the_drawing_is_the_same_each_time_and_names_cannot_break_it() {
        let mut recipe = recipe();
        recipe.signals[0].name = "<&\"\u{0}".to_owned();
        let drawn = draw(&recipe);
        assert_eq!(drawn, draw(&recipe));
        assert!(drawn.contains("&lt;&amp;&quot;") && !drawn.contains('\u{0}'));
        assert_eq!(drawn.matches("<g ").count(), drawn.matches("</g>").count());
    }
}
