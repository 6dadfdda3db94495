//! `netstead import`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use netstead_model::{Cidr, Ident};

/// Make a configuration of another tool's settings
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Example:
  netstead import dnsweaver --env-file dnsweaver.env --out netstead.toml")]
pub(crate) enum Import {
    /// Read dnsweaver's variables or its file, and write a netstead.toml
    ///
    /// What could not be carried over stands in it as a comment. Secrets that are variables or files stay where they are
    /// and are pointed at.
    #[command(after_help = "\
Examples:
  netstead import dnsweaver                                # from the environment, to stdout
  netstead import dnsweaver --env-file dnsweaver.env --out netstead.toml
  netstead import dnsweaver --file config.yaml --out netstead.toml
  netstead config check netstead.toml")]
    Dnsweaver(Dnsweaver),
    /// Read external-dns' flags, and write a netstead.toml
    ///
    /// They are read from a file, or from the cluster that external-dns runs in. The file has a command line, a list of
    /// arguments, or the Deployment as `kubectl get deployment -o yaml` prints it. What could not be carried over stands in
    /// the netstead.toml as a comment, and so does the command that takes over the records external-dns made.
    #[command(after_help = "\
Examples:
  netstead import external-dns --file args.txt
  kubectl -n external-dns get deployment external-dns -o yaml | netstead import external-dns --file -
  netstead import external-dns --kubeconfig ~/.kube/config --out netstead.toml
  netstead config check netstead.toml")]
    ExternalDns(ExternalDns),
    /// Read ranges of terraform-provider-netaddr in an etcd, and make pools and claims of them
    ///
    /// Without --yes it only shows what it would make. The etcd is not changed. All of it may be done again: a claim that is there
    /// stays as it is.
    #[command(after_help = "\
Examples:
  netstead import netaddr --endpoints http://127.0.0.1:2379 --range /ranges/lan/
  netstead import netaddr --endpoints etcd-1:2379 --cacert ca.pem --range /ranges/lan/ --pool office --yes")]
    Netaddr(NetaddrImport),
    /// Read prefixes, ranges and addresses of NetBox, and make pools and claims of them
    ///
    /// Without --yes it only shows what it would make. NetBox is not changed. All of it may be done again: a pool or a claim that is
    /// there stays as it is. Objects with a mark of Netstead are left out.
    #[command(after_help = "\
Examples:
  NETBOX_API_TOKEN=... netstead import netbox https://netbox.example.com
  netstead import netbox https://netbox.example.com --api-token-file token --within 10.0.0.0/16 --yes

Exit codes: 0 all is imported, 1 error, 2 something was refused, with the reason.")]
    Netbox(NetBoxImport),
    /// Read subnets and addresses of phpIPAM, and make pools and claims of them
    ///
    /// Without --yes it only shows what it would make. phpIPAM is not changed. All of it may be done again: a pool or a claim that is
    /// there stays as it is. Addresses with a mark of Netstead are left out.
    #[command(after_help = "\
Examples:
  netstead import phpipam https://ipam.example.com --username netstead --password-file password
  netstead import phpipam https://ipam.example.com --app import --code-file code --section Lab --yes

Exit codes: 0 all is imported, 1 error, 2 something was refused, with the reason.")]
    Phpipam(PhpIpamImport),
    /// Read pipam's file, and write a netstead.toml
    ///
    /// TOML, YAML and JSON are read. What could not be carried over stands in it as a comment. Secrets in files stay where
    /// they are and are pointed at.
    #[command(after_help = "\
Examples:
  netstead import pipam                                    # from pipam's usual places, to stdout
  netstead import pipam --file config.toml --out netstead.toml
  netstead config check netstead.toml")]
    Pipam(Pipam),
}

#[derive(Debug, Args)]
pub(crate) struct Pipam {
    /// pipam's file [default: `pipam/config.*` in `$XDG_CONFIG_HOME` or `/etc`]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Where to write; a file that is there already stays [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Dnsweaver {
    /// A file of `NAME=value` lines instead of the environment
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) env_file: Option<PathBuf>,
    /// dnsweaver's YAML file instead of the environment
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Where to write; a file that is there already stays [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").args(["file", "kubeconfig"]).required(true))]
pub(crate) struct ExternalDns {
    /// A file with its flags or its Deployment; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The kubeconfig of the cluster it runs in
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(crate) context: Option<String>,
    /// The namespace of its Deployment
    #[arg(long, value_name = "NAME", requires = "kubeconfig", default_value = "external-dns")]
    pub(crate) namespace: String,
    /// The name of its Deployment
    #[arg(long, value_name = "NAME", requires = "kubeconfig", default_value = "external-dns")]
    pub(crate) deployment: String,
    /// Where to write; a file that is there already stays [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NetaddrImport {
    /// Members of the etcd; one without `http://` means TLS
    #[arg(
        long,
        value_name = "URL",
        env = "ETCDCTL_ENDPOINTS",
        hide_env = true,
        value_delimiter = ',',
        required = true
    )]
    pub(crate) endpoints: Vec<String>,
    /// The key prefix of a range, as `/ranges/lan/`; may be given more than once
    #[arg(long, value_name = "PREFIX", required = true)]
    pub(crate) range: Vec<String>,
    /// The name of the pool [default: the last part of the prefix]
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<Ident>,
    /// A user of etcd
    #[arg(long, value_name = "NAME", env = "ETCDCTL_USERNAME", hide_env = true)]
    pub(crate) username: Option<String>,
    /// The password of that user
    #[arg(long, value_name = "TEXT", env = "ETCDCTL_PASSWORD", hide_env = true)]
    pub(crate) password: Option<String>,
    /// Certificates to trust instead of the machine's, PEM
    #[arg(long, value_name = "FILE", env = "ETCDCTL_CACERT", hide_env = true)]
    pub(crate) cacert: Option<PathBuf>,
    /// A client certificate, PEM
    #[arg(long, value_name = "FILE", env = "ETCDCTL_CERT", hide_env = true)]
    pub(crate) cert: Option<PathBuf>,
    /// The key of `--cert`, PEM
    #[arg(long, value_name = "FILE", env = "ETCDCTL_KEY", hide_env = true)]
    pub(crate) key: Option<PathBuf>,
    /// Make the pools and claims
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Options of every import of an IPAM system.
#[derive(Debug, Args)]
pub(crate) struct IpamImport {
    /// Its web interface: `https://ipam.example.com`
    #[arg(value_name = "ADDRESS")]
    pub(crate) server: String,
    /// Import networks, ranges and addresses in this network alone; may be given more than once
    #[arg(long, value_name = "CIDR")]
    pub(crate) within: Vec<Cidr>,
    /// Import this VRF alone, `default` for what is in none; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) vrf: Vec<String>,
    /// The name of the pool, if it is one [default: its network, as `10.0.3.0_24`]
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<Ident>,
    /// Give claims the names of their addresses as hostnames too, so that DNS servers get them
    #[arg(long)]
    pub(crate) hostnames: bool,
    /// Certificates to trust instead of the machine's, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// A client certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of `--cert`, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Make the pools and claims
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NetBoxImport {
    #[command(flatten)]
    pub(crate) shared: IpamImport,
    /// A token that may read, of version 1 or 2
    #[arg(long, value_name = "TEXT", env = "NETBOX_API_TOKEN", hide_env = true, hide_env_values = true)]
    pub(crate) api_token: Option<String>,
    /// A file with that token
    #[arg(long, value_name = "FILE")]
    pub(crate) api_token_file: Option<PathBuf>,
    /// The custom field with marks of Netstead
    #[arg(long, value_name = "NAME", default_value = "netstead_key")]
    pub(crate) key_field: String,
}

#[derive(Debug, Args)]
pub(crate) struct PhpIpamImport {
    #[command(flatten)]
    pub(crate) shared: IpamImport,
    /// The id of an app that may read
    #[arg(long, value_name = "ID", env = "PHPIPAM_APP_ID", hide_env = true, default_value = "netstead")]
    pub(crate) app: String,
    /// A user of phpIPAM, for an app with a user token
    #[arg(long, value_name = "NAME", env = "PHPIPAM_USER_NAME", hide_env = true)]
    pub(crate) username: Option<String>,
    /// The password of that user
    #[arg(long, value_name = "TEXT", env = "PHPIPAM_PASSWORD", hide_env = true, hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// A file with that password
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The code of an app with a code, instead of user and password
    #[arg(long, value_name = "TEXT", env = "PHPIPAM_APP_CODE", hide_env = true, hide_env_values = true)]
    pub(crate) code: Option<String>,
    /// A file with that code
    #[arg(long, value_name = "FILE")]
    pub(crate) code_file: Option<PathBuf>,
    /// Import this section alone, by its name or id; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Vec<String>,
    /// The field of addresses with marks of Netstead
    #[arg(long, value_name = "NAME", default_value = "note")]
    pub(crate) key_field: String,
}
