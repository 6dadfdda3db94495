//! All pages of a list, one after the other.

use serde::{Serialize, de::DeserializeOwned};

use crate::{Client, ClientError, types::Page};

/// A query whose answer comes in pages.
pub trait Paged: Serialize + Send + Sync {
    type Item: DeserializeOwned + Send;
    /// Where it is asked, below `/api/v1/`.
    const PATH: &'static str;

    fn go_on_after(&mut self, cursor: String);
    /// Asks for as much per page as the server gives, unless a limit is set.
    fn ask_for_most(&mut self);
    /// Asks for at most so much per page.
    fn ask_for(&mut self, most: u32);
}

impl Client {
    /// One page of the list that `query` asks for.
    pub async fn page<Q: Paged>(&self, query: &Q) -> Result<Page<Q::Item>, ClientError> {
        let path: Vec<&str> = Q::PATH.split('/').collect();
        self.get(&path, query).await
    }

    /// Everything the list has.
    pub async fn all<Q: Paged>(&self, mut query: Q) -> Result<Vec<Q::Item>, ClientError> {
        let mut items = Vec::new();
        query.ask_for_most();
        loop {
            let page = self.page(&query).await?;
            items.extend(page.items);
            let Some(next) = page.next else { return Ok(items) };
            query.go_on_after(next);
        }
    }
}
