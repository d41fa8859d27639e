//! Binds handlers to the rows of the access table.
//!
//! A handler is an `async fn(Caller, Input<T>, Deps) -> Result<impl Answers, ApiError>`. Its caller
//! type says which access it relies on; a row with any other access refuses it when the service
//! starts, not when somebody gets in. The types of its input and answer are what the API document
//! says of the route.

use std::collections::BTreeMap;
use std::future::Future;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use strum::VariantArray;
use utoipa::ToSchema;

use super::caller::{Caller, Identified, Identity};
use crate::access::{self, Access, Op};
use crate::answer::Answers;
use crate::deps::Deps;
use crate::error::ApiError;
use crate::input::{Input, RawInput};
use crate::openapi::{Schemas, Shape};
use crate::reply::Reply;

/// Why handlers and table do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// An operation has no row.
    #[error("{0} is not in the access table")]
    NoRow(Op),
    /// Two handlers for one row.
    #[error("{0} has two handlers")]
    Twice(Op),
    /// The handler relies on other access than the row grants.
    #[error("{op} is {row:?} in the access table, but its handler is for {handler:?}")]
    Access {
        /// The operation.
        op: Op,
        /// What the table says.
        row: Access,
        /// What the handler relies on.
        handler: Access,
    },
    /// Rows without a handler.
    #[error("no handler for {0:?}")]
    Missing(Vec<Op>),
    /// Types of different schemas have one name in the API document.
    #[error("the API document has several schemas of the names {0:?}")]
    SchemaTwice(Vec<String>),
    /// Two rows have one address.
    #[error("{0} is in the access table twice")]
    AddressTwice(&'static str),
}

type Erased = Box<
    dyn Fn(Identity, RawInput, Deps) -> BoxFuture<'static, Result<Reply, ApiError>> + Send + Sync,
>;

/// Tells the types of a handler.
type Describe = fn(&mut Schemas) -> Shape;

/// A bound handler.
struct Handler {
    call: Erased,
    describe: Describe,
}

/// Collects handlers.
#[derive(Default)]
pub struct Binder {
    handlers: BTreeMap<Op, Handler>,
    error: Option<RegistryError>,
}

impl Binder {
    /// Binds a handler to a row. The first mistake is told by [`Self::build`].
    #[must_use]
    pub fn bind<C, T, A, F, Fut>(mut self, op: Op, handler: F) -> Self
    where
        C: Caller,
        T: DeserializeOwned + ToSchema + Send + 'static,
        A: Answers,
        F: Fn(C, Input<T>, Deps) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, ApiError>> + Send + 'static,
    {
        if let Err(error) = self.try_bind(op, handler) {
            self.error.get_or_insert(error);
        }
        self
    }

    fn try_bind<C, T, A, F, Fut>(&mut self, op: Op, handler: F) -> Result<(), RegistryError>
    where
        C: Caller,
        T: DeserializeOwned + ToSchema + Send + 'static,
        A: Answers,
        F: Fn(C, Input<T>, Deps) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, ApiError>> + Send + 'static,
    {
        let row = access::route(op).ok_or(RegistryError::NoRow(op))?.access;
        if row != C::ACCESS {
            let handler = C::ACCESS;
            return Err(RegistryError::Access { op, row, handler });
        }
        let erased: Erased = Box::new(move |identity, raw, deps| {
            let prepared = C::from_found(Identified(identity))
                .ok_or(ApiError::NotSignedIn)
                .and_then(|caller| Ok((caller, raw.into_input()?)));
            match prepared {
                Ok((caller, input)) => {
                    let answer = handler(caller, input, deps);
                    Box::pin(async move { answer.await.map(Answers::into_reply) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        });
        let handler = Handler {
            call: erased,
            describe: Shape::of::<T, A>,
        };
        match self.handlers.insert(op, handler) {
            None => Ok(()),
            Some(_) => Err(RegistryError::Twice(op)),
        }
    }

    /// Checks that every row has its handler.
    ///
    /// # Errors
    /// The first mistake in binding, or the rows without a handler.
    pub fn build(self) -> Result<Registry, RegistryError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let missing: Vec<Op> = Op::VARIANTS
            .iter()
            .copied()
            .filter(|op| !self.handlers.contains_key(op))
            .collect();
        if missing.is_empty() {
            Ok(Registry(self.handlers))
        } else {
            Err(RegistryError::Missing(missing))
        }
    }
}

/// The handler of every row.
pub struct Registry(BTreeMap<Op, Handler>);

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Registry {
    /// The types of every route's handler; their schemas are added to `schemas`.
    pub(crate) fn shapes(&self, schemas: &mut Schemas) -> BTreeMap<Op, Shape> {
        let described = self.0.iter();
        described
            .map(|(op, handler)| (*op, (handler.describe)(schemas)))
            .collect()
    }

    pub(super) async fn call(
        &self,
        op: Op,
        identity: Identity,
        input: RawInput,
        deps: Deps,
    ) -> Result<Reply, ApiError> {
        match self.0.get(&op) {
            Some(handler) => (handler.call)(identity, input, deps).await,
            // `build` has ruled this out.
            None => Err(ApiError::internal(RegistryError::Missing(vec![op]))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{Anyone, OrdinaryUser, Superadmin};
    use crate::input::Nothing;

    async fn handler<C: Caller>(_: C, _: Input<Nothing>, _: Deps) -> Result<Reply, ApiError> {
        Ok(Reply::ok("x"))
    }

    #[test]
    fn a_handler_fits_only_rows_of_its_access() {
        let error = Binder::default()
            .bind(Op::UsersDelete, handler::<OrdinaryUser>)
            .build()
            .unwrap_err();
        assert_eq!(
            error,
            RegistryError::Access {
                op: Op::UsersDelete,
                row: Access::Superadmin,
                handler: Access::OrdinaryUser
            }
        );
        let bound = Binder::default().bind(Op::UsersDelete, handler::<Superadmin>);
        assert!(bound.error.is_none());
    }

    #[test]
    fn every_row_needs_one_handler() {
        let twice = Binder::default()
            .bind(Op::Health, handler::<Anyone>)
            .bind(Op::Health, handler::<Anyone>);
        assert_eq!(twice.build().unwrap_err(), RegistryError::Twice(Op::Health));
        let one = Binder::default()
            .bind(Op::Health, handler::<Anyone>)
            .build();
        let Err(RegistryError::Missing(missing)) = one else {
            panic!("rows without handler were accepted");
        };
        assert_eq!(missing.len(), Op::VARIANTS.len() - 1);
    }
}
