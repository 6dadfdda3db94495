//! Gives back what a backend holds for an ended claim, or for an address whose rest is over.

use netstead_model::Waiting;

use super::{DrawWorker, Outcome, Stop, Target};
use crate::{
    command::{DrawReply, DrawStep, OwedPlace},
    sabotage::Sabotage,
};

/// The objects left at the backend under a key.
enum Left {
    /// Nothing, and no request can bring anything any more.
    Nothing { gave: bool },
    /// A request may still be on its way.
    Perhaps,
}

impl DrawWorker {
    pub(super) async fn end_withdrawn(&self, at: &Target<'_>, waiting: &Waiting) -> Result<Outcome, Stop> {
        let Some(draw) = waiting.draw.as_deref() else { return Ok(Outcome::Void) };
        let (seq, key) = (waiting.seq, draw.key.clone());
        if self.omits(Sabotage::DrawWithdrawn) {
            self.step(DrawStep::Gone { seq, key, gave: false }).await?;
            return Ok(Outcome::Done);
        }
        match self.release_key(at, &key).await? {
            Left::Nothing { gave } => {
                self.step(DrawStep::Gone { seq, key: key.clone(), gave }).await?;
                at.asked_at.forget(&key);
                Ok(if gave { Outcome::GaveBack } else { Outcome::Done })
            }
            Left::Perhaps => Ok(Outcome::Again),
        }
    }

    pub(super) async fn give_back(
        &self,
        at: &Target<'_>,
        place: &OwedPlace,
        early: bool,
    ) -> Result<Outcome, Stop> {
        match self.step(DrawStep::GiveBack { place: place.clone(), early }).await? {
            DrawReply::GivingBack(_) => {}
            _ => return Ok(Outcome::Void),
        }
        if self.omits(Sabotage::DrawGiveBack) {
            // The slot is freed before the backend confirms.
            self.step(DrawStep::GaveBack { place: place.clone() }).await?;
            self.release_key(at, &place.key).await?;
            return Ok(Outcome::GaveBack);
        }
        match self.release_key(at, &place.key).await? {
            Left::Nothing { .. } => {
                self.step(DrawStep::GaveBack { place: place.clone() }).await?;
                at.asked_at.forget(&place.key);
                Ok(Outcome::GaveBack)
            }
            Left::Perhaps => Ok(Outcome::Again),
        }
    }

    /// Releases every object that carries the key.
    ///
    /// A former leader's request may arrive until the request time has passed, so nothing counts as gone before then.
    async fn release_key(&self, at: &Target<'_>, key: &str) -> Result<Left, Stop> {
        let settled = self.now().saturating_sub(at.asked_at.last_claim(key)) >= self.options.request_time;
        let since = at.asked_at.last_claim(key);
        let found = self.request(at, key, at.backend.look_up(at.pool, key)).await?;
        let gave = !found.is_empty();
        for object in found.iter().filter(|object| object.key == key) {
            self.request(at, key, at.backend.release(at.pool, object)).await?;
        }
        // Neither a look-up nor a release brings an object: they do not count as asking.
        at.asked_at.note(key, since);
        Ok(if settled { Left::Nothing { gave } } else { Left::Perhaps })
    }
}
