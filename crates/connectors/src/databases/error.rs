//! What the errors of several kinds of server are told with.

/// What to do about a server that has no connection left for us.
pub(super) const TOO_MANY_CONNECTIONS: &str = "it lets no more connections in: take fewer at once (`max_connections=1` in the \
                                               address, or the limit of the data source), or allow this user more";
