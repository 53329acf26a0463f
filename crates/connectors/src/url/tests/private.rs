//! What is not on the public network is not reached: by number, by name, or by redirect.

use super::*;

/// A connector that may not, but finds one public name here.
fn guarded(server: &Server) -> Arc<dyn Connector> {
    let configuration = json!({ "addresses": [format!("http://public.example:{}/", server.port())] });
    let mut source = source(&configuration, &Surroundings::default());
    let fetcher = Arc::into_inner(source.fetcher).unwrap();
    source.fetcher = Arc::new(fetcher.with_host("public.example", ([127, 0, 0, 1], server.port()).into()));
    Arc::new(Addresses(Arc::new(source)))
}

#[tokio::test]
async fn addresses_and_names_of_this_machine_are_refused() {
    let server = Server::start(|_| Response::ok("secret"));
    let configuration = json!({ "addresses": [server.url("/")] });
    let connector: Arc<dyn Connector> =
        Arc::new(Addresses(Arc::new(source(&configuration, &Surroundings::default()))));
    let port = server.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:7f00:1]", "10.0.0.1"] {
        let error = read_error(&connector, &format!("http://{host}:{port}/")).await;
        assert_eq!(error.reason, Reason::PermissionDenied, "{error}");
        assert!(error.detail.contains("--allow-private"), "{error}");
    }
    assert_eq!(list(connector.as_ref()).await.unwrap().len(), 1, "listed, and refused when it is read");
    let error = connector.test().await.unwrap_err();
    assert!(error.to_string().contains("--allow-private"), "{error}");
    assert_eq!(server.requests(), []);
    let allowed = super::connector(configuration);
    assert_eq!(read(&allowed, &server.url("/")).await.0, b"secret");
}

#[tokio::test]
async fn no_redirect_leads_inside() {
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "10.0.0.1"] {
        let server = Server::start(move |request| match request.path() {
            "/" => {
                let port = request.header("host").unwrap().rsplit(':').next().unwrap();
                Response::status(302).header("Location", format!("http://{host}:{port}/secret"))
            }
            "/fine" => Response::ok("public"),
            _ => Response::ok("secret"),
        });
        let connector = guarded(&server);
        let address = |path: &str| format!("http://public.example:{}{path}", server.port());
        assert_eq!(read(&connector, &address("/fine")).await, (b"public".to_vec(), Ok(())));
        let error = read_error(&connector, &address("/")).await;
        assert_eq!(error.reason, Reason::PermissionDenied, "{error}");
        assert!(error.detail.contains("--allow-private"), "{error}");
        assert_eq!(server.count("/secret"), 0, "{host}");
    }
}

#[tokio::test]
async fn no_redirect_leads_to_where_credentials_are_told() {
    for allowed in [json!(true), json!(["127.0.0.0/8", "169.254.0.0/16"])] {
        for host in ["169.254.169.254", "2852039166", "[::ffff:169.254.169.254]", "metadata.google.internal"]
        {
            let server = Server::start(move |request| match request.path() {
                "/fine" => Response::ok("private"),
                _ => Response::status(302).header("Location", format!("http://{host}/latest/meta-data/")),
            });
            let addresses = [server.url("/")];
            let configuration = json!({ "addresses": addresses, "allow_private": allowed });
            let connector: Arc<dyn Connector> =
                Arc::new(Addresses(Arc::new(source(&configuration, &Surroundings::default()))));
            assert_eq!(read(&connector, &server.url("/fine")).await, (b"private".to_vec(), Ok(())));
            let error = read_error(&connector, &server.url("/")).await;
            assert_eq!(error.reason, Reason::PermissionDenied, "{error}");
            assert!(error.detail.contains("never"), "{error}");
        }
    }
}

#[tokio::test]
async fn only_the_ranges_that_are_given_are_reached() {
    let server = Server::start(|_| Response::ok("private"));
    let reached = |ranges: Value| {
        let configuration = json!({ "addresses": [server.url("/")], "allow_private": ranges });
        let source = source(&configuration, &Surroundings::default());
        Arc::new(Addresses(Arc::new(source))) as Arc<dyn Connector>
    };
    let error = read_error(&reached(json!(["10.0.0.0/8"])), &server.url("/")).await;
    assert_eq!(error.reason, Reason::PermissionDenied, "{error}");
    assert_eq!(read(&reached(json!(["10.0.0.0/8", "127.0.0.1"])), &server.url("/")).await.0, b"private");
}
