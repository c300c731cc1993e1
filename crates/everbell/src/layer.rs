//! [`Layers`]: code around every handler of a program.

use crate::targets::Action;

#[cfg(feature = "tower")]
mod tower;

#[cfg(feature = "tower")]
pub(crate) use tower::erase;
#[cfg(feature = "tower")]
pub use tower::{HandlerError, HandlerService, RunResult};

/// Makes an action of another one.
type Layer = Box<dyn Fn(Action) -> Action + Send>;

/// The layers of a program, from the innermost to the outermost.
#[derive(Default)]
pub(crate) struct Layers(Vec<Layer>);

impl Layers {
    #[cfg(feature = "tower")]
    pub(crate) fn add(&mut self, layer: Layer) {
        self.0.push(layer);
    }

    /// Returns the action within all layers.
    pub(crate) fn wrap(&self, action: Action) -> Action {
        self.0.iter().fold(action, |action, layer| layer(action))
    }
}
