//! Asks a backend for the address of a waiting claim.

use netstead_model::{
    BackendClaim, BackendError, BackendErrorKind, BackendObject, Draw, DrawFailure, Waiting, Want,
};

use super::{DrawWorker, Finished, Outcome, Stop, Target, comparisons::Obstacle};
use crate::{
    command::{DrawReply, DrawStep},
    sabotage::Sabotage,
};

impl DrawWorker {
    pub(super) async fn ask(&self, at: &Target<'_>, waiting: &Waiting) -> Result<Outcome, Stop> {
        let Some(draw) = waiting.draw.as_deref() else { return Ok(Outcome::Void) };
        let (seq, key) = (waiting.seq, draw.key.clone());
        if !draw.asked && !self.omits(Sabotage::DrawAsked) {
            match self.step(DrawStep::Asking { seq, key: key.clone() }).await? {
                DrawReply::Done => {}
                _ => return Ok(Outcome::Void),
            }
        }
        // Only a key that was never in a request is claimed without a look.
        let found = if draw.asked && !self.omits(Sabotage::DrawLookUp) {
            let found = self.request(at, &key, at.backend.look_up(at.pool, &key)).await;
            self.told(waiting, draw, found).await?
        } else {
            Some(Vec::new())
        };
        let Some(found) = found else { return Ok(Outcome::Again) };
        let (several, existed) = (found.len() > 1, !found.is_empty());
        let object = match found.into_iter().next() {
            Some(oldest) => oldest,
            None => match self.claim(at, waiting, draw).await? {
                Ok(object) => object,
                Err(outcome) => return Ok(outcome),
            },
        };
        if *object.key != *key {
            let reason = format!("it answered with an object of another key, `{}`", object.key);
            let wrong = Err(Stop::Backend(BackendError::new(BackendErrorKind::Refused, reason)));
            self.told::<()>(waiting, draw, wrong).await?;
            return Ok(Outcome::Again);
        }
        let checked = !self.omits(Sabotage::DrawBindable);
        match self.step(DrawStep::Bind { seq, key, object: Box::new(object), checked }).await? {
            DrawReply::Later => Ok(Outcome::Again),
            DrawReply::Bound(_) if several => Ok(Outcome::Duplicates),
            _ if existed => Ok(Outcome::Done),
            _ => Ok(Outcome::Given),
        }
    }

    /// Claims as the caller wants it. A preferred address is asked for first; any only if that one cannot be had.
    async fn claim(
        &self,
        at: &Target<'_>,
        waiting: &Waiting,
        draw: &Draw,
    ) -> Result<Result<BackendObject, Outcome>, Stop> {
        let mut want = match draw.want {
            Want::Prefer(address) => Want::Exact(address),
            want => want,
        };
        loop {
            // A key that changes between requests is what rule 1 forbids.
            let changed =
                self.omits(Sabotage::DrawKey).then(|| format!("{}+{}", draw.key, self.now().as_millis()));
            let key = changed.clone().unwrap_or_else(|| draw.key.to_string());
            let claim = BackendClaim {
                pool: at.pool.to_owned(),
                key,
                want,
                length: waiting.length,
                note: format!("`{}` of `{}`", waiting.key, waiting.owner),
            };
            let error = match self.request(at, &draw.key, at.backend.claim(&claim)).await {
                Ok(object) if changed.is_some() => {
                    return Ok(Ok(BackendObject { key: draw.key.to_string(), ..object }));
                }
                Ok(object) => return Ok(Ok(object)),
                Err(Stop::Backend(error)) => error,
                Err(stop) => return Err(stop),
            };
            let not_that = matches!(error.kind, BackendErrorKind::Held | BackendErrorKind::NotHere);
            if not_that && want != Want::Any && matches!(draw.want, Want::Prefer(_)) {
                want = Want::Any;
                continue;
            }
            let over = not_that && matches!(draw.want, Want::Exact(_));
            let exhausted = error.kind == BackendErrorKind::Exhausted;
            self.note_failure(waiting, draw, &error, over).await?;
            if !error.kind.is_refusal() {
                return Err(Stop::Backend(error));
            }
            return Ok(Err(if exhausted { Outcome::Exhausted } else { Outcome::Again }));
        }
    }

    /// Stores why a claim is not asked for yet.
    pub(super) async fn note_obstacle(&self, obstacle: Obstacle) -> Finished {
        let Obstacle { upstream, waiting, error } = obstacle;
        let Some(draw) = waiting.draw.as_deref() else {
            return Finished::Job { upstream, key: "".into(), result: Ok(Outcome::Void) };
        };
        let noted = self.note_failure(&waiting, draw, &error, false).await;
        Finished::Job { upstream, key: draw.key.clone(), result: noted.map(|()| Outcome::Void) }
    }

    /// Stores why the claim still waits.
    async fn note_failure(
        &self,
        waiting: &Waiting,
        draw: &Draw,
        error: &BackendError,
        over: bool,
    ) -> Result<(), Stop> {
        let message = match &error.hint {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        let failure = DrawFailure { kind: error.kind, message };
        self.step(DrawStep::Failed { seq: waiting.seq, key: draw.key.clone(), failure, over }).await.map(drop)
    }

    /// Passes an answer on. `None` if the backend refused, which is stored.
    async fn told<T>(
        &self,
        waiting: &Waiting,
        draw: &Draw,
        answer: Result<T, Stop>,
    ) -> Result<Option<T>, Stop> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Backend(error)) => {
                self.note_failure(waiting, draw, &error, false).await?;
                if error.kind.is_refusal() { Ok(None) } else { Err(Stop::Backend(error)) }
            }
            Err(stop) => Err(stop),
        }
    }
}
