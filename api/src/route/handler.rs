//! Handlers of any types as values of one type.

use std::future::Future;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::Access;
use crate::answer::Answers;
use crate::deps::Deps;
use crate::dispatch::{Caller, Identity};
use crate::error::{ApiError, Result};
use crate::input::{Input, RawInput};
use crate::openapi::{Schemas, Shape};
use crate::reply::Reply;

type Call =
    Box<dyn Fn(Identity, RawInput, Deps) -> BoxFuture<'static, Result<Reply>> + Send + Sync>;

/// What answers a route.
pub(crate) struct Handler {
    call: Call,
    describe: fn(&mut Schemas) -> Shape,
}

impl Handler {
    pub(crate) async fn call(
        &self,
        identity: Identity,
        input: RawInput,
        deps: Deps,
    ) -> Result<Reply> {
        (self.call)(identity, input, deps).await
    }

    /// The types that it takes and answers with; their schemas are added to `schemas`.
    pub(crate) fn describe(&self, schemas: &mut Schemas) -> Shape {
        (self.describe)(schemas)
    }
}

/// An `async fn(Caller, Input<T>, Deps) -> Result<impl Answers>`. Its caller type says who
/// may use the route, and the types of its input and answer what the API document says of it.
pub(crate) trait Handle<X>: Sized {
    fn access(&self) -> Access;
    fn is_on_machine(&self) -> bool;
    fn erase(self) -> Handler;
}

impl<C, T, A, F, Fut> Handle<(C, T, A)> for F
where
    C: Caller,
    T: DeserializeOwned + ToSchema + Send + 'static,
    A: Answers,
    F: Fn(C, Input<T>, Deps) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A>> + Send + 'static,
{
    fn access(&self) -> Access {
        C::ACCESS
    }

    fn is_on_machine(&self) -> bool {
        C::ON_MACHINE
    }

    fn erase(self) -> Handler {
        let call: Call = Box::new(move |identity, raw, deps| {
            let prepared = C::from_identity(identity)
                .ok_or(ApiError::NotSignedIn)
                .and_then(|caller| Ok((caller, raw.into_input()?)));
            match prepared {
                Ok((caller, input)) => {
                    let answer = self(caller, input, deps);
                    Box::pin(async move { answer.await.map(Answers::into_reply) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        });
        Handler {
            call,
            describe: Shape::of::<T, A>,
        }
    }
}
