//! What of web addresses is scanned.

use clap::Args;

#[derive(Args, Default)]
pub struct WebArgs {
    /// Follow links to pages of the same site, so many deep
    #[arg(long, value_name = "DEPTH", help_heading = "Web addresses")]
    pub crawl: Option<u32>,
    /// The addresses are sitemaps: scan what they name
    #[arg(long, help_heading = "Web addresses", conflicts_with_all = ["crawl", "address_list"])]
    pub sitemap: bool,
    /// The addresses are lists of addresses, one a line: scan those
    #[arg(long, help_heading = "Web addresses", conflicts_with = "crawl")]
    pub address_list: bool,
    /// Also reach for private networks and this machine, or for ranges: =10.0.0.0/8,fd00::/8
    #[arg(
        long,
        value_name = "RANGE,…",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        help_heading = "Web addresses"
    )]
    pub allow_private: Option<Vec<String>>,
}
