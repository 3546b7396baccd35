package confine

import (
	"path/filepath"
	"slices"
	"strings"
)

// secret is a place with credentials or typed input.
type secret struct {
	// place is a path in a home directory, with a slash at the end if it is a directory. A pattern hides what matches at
	// the start.
	place, tool, source string
	// moved names variables that hold another path of it, each with what follows that path: "CARGO_HOME/credentials.toml".
	moved string
}

// knownSecrets are the places that are hidden in the home directories of the user that programs run as. Directories that also
// contain programs, such as ~/.cargo, ~/.fly and ~/.pulumi, are not hidden as a whole.
var knownSecrets = [...]secret{
	// remote shells, keys and files
	{".ssh/", "OpenSSH", "ssh(1)", ""},
	{".gnupg/", "GnuPG", "gpg(1)", "GNUPGHOME"},
	{".putty/", "PuTTY", "the.earth.li/~sgtatham/putty: storing configuration in a file", ""},
	{".netrc", "netrc", "ftp(1), curl(1) --netrc", "NETRC"},
	{"_netrc", "netrc", "curl(1) --netrc", ""},
	{".curlrc", "curl", "curl(1) --config", ""},
	{".wgetrc", "Wget", "gnu.org/software/wget/manual: Wgetrc Location", "WGETRC"},
	{".config/rclone/", "rclone", "rclone.org/docs: config file", "RCLONE_CONFIG"},
	{".config/filezilla/", "FileZilla", "wiki.filezilla-project.org: Client Configuration", ""},
	{".filezilla/", "FileZilla", "wiki.filezilla-project.org: Client Configuration", ""},
	{".local/share/lftp/", "lftp", "lftp(1): FILES", ""},
	{".lftp/", "lftp", "lftp(1): FILES", ""},
	{".config/remmina/", "Remmina", "gitlab.com/Remmina/Remmina", ""},
	{".local/share/remmina/", "Remmina", "gitlab.com/Remmina/Remmina", ""},
	{".vnc/", "VNC", "vncpasswd(1)", ""},
	{".Xauthority", "X11", "xauth(1)", "XAUTHORITY"},
	{".ICEauthority", "X11", "iceauth(1)", "ICEAUTHORITY"},
	{".cert/", "NetworkManager", "nm-settings(5)", ""},
	{".davfs2/secrets", "davfs2", "davfs2.conf(5)", ""},
	{".smbcredentials", "CIFS", "mount.cifs(8): credentials", ""},
	{".passwd-s3fs", "s3fs", "github.com/s3fs-fuse/s3fs-fuse", ""},
	{".tsh/", "Teleport", "goteleport.com/docs: tsh", "TELEPORT_HOME"},
	{".step/", "step", "smallstep.com/docs/step-cli", "STEPPATH"},
	{".config/syncthing/", "Syncthing", "docs.syncthing.net: syncthing configuration", ""},
	{".local/state/syncthing/", "Syncthing", "docs.syncthing.net: syncthing configuration", ""},
	{".dropbox/", "Dropbox", "firejail: disable-common.inc", ""},
	{".config/Nextcloud/", "Nextcloud", "docs.nextcloud.com: desktop client", ""},
	{".megaCmd/", "MEGAcmd", "github.com/meganz/MEGAcmd", ""},
	{".config/borg/", "Borg", "borgbackup.readthedocs.io: environment variables", "BORG_KEYS_DIR"},

	// clouds
	{".aws/", "AWS CLI", "docs.aws.amazon.com/cli: configuration and credential files", "AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE"},
	{".azure/", "Azure CLI", "learn.microsoft.com/cli/azure: configuration", "AZURE_CONFIG_DIR"},
	{".config/gcloud/", "gcloud", "cloud.google.com/sdk/docs/configurations", "CLOUDSDK_CONFIG GOOGLE_APPLICATION_CREDENTIALS"},
	{".boto", "gsutil", "cloud.google.com/storage/docs/boto-gsutil", "BOTO_CONFIG"},
	{".gsutil/", "gsutil", "cloud.google.com/storage/docs/boto-gsutil", ""},
	{".bigqueryrc", "bq", "cloud.google.com/bigquery/docs/bq-command-line-tool", "BIGQUERYRC"},
	{".oci/", "OCI CLI", "docs.oracle.com/iaas: SDK and CLI configuration file", "OCI_CONFIG_FILE OCI_CLI_CONFIG_FILE"},
	{".bluemix/config.json", "IBM Cloud CLI", "cloud.ibm.com/docs/cli", "IBMCLOUD_HOME/.bluemix/config.json"},
	{".aliyun/", "Alibaba Cloud CLI", "github.com/aliyun/aliyun-cli", ""},
	{".tccli/", "Tencent Cloud CLI", "github.com/TencentCloud/tencentcloud-cli", ""},
	{".config/doctl/", "doctl", "github.com/digitalocean/doctl", "DIGITALOCEAN_CONFIG"},
	{".config/hcloud/", "hcloud", "github.com/hetznercloud/cli", "HCLOUD_CONFIG"},
	{".config/scw/", "Scaleway CLI", "github.com/scaleway/scaleway-cli", "SCW_CONFIG_PATH"},
	{".config/exoscale/", "Exoscale CLI", "github.com/exoscale/cli", ""},
	{".config/linode-cli", "Linode CLI", "github.com/linode/linode-cli", ""},
	{".linode-cli/", "Linode CLI", "github.com/linode/linode-cli", ""},
	{".vultr-cli.yaml", "Vultr CLI", "github.com/vultr/vultr-cli", ""},
	{".civo.json", "Civo CLI", "github.com/civo/cli", ""},
	{".ovh.conf", "OVH", "github.com/ovh/python-ovh", ""},
	{".config/openstack/", "OpenStack", "docs.openstack.org/openstacksdk: configuration", "OS_CLIENT_CONFIG_FILE"},
	{".cf/", "Cloud Foundry CLI", "docs.cloudfoundry.org/cf-cli", "CF_HOME/.cf"},
	{".s3cfg", "s3cmd", "s3tools.org/usage", ""},
	{".mc/", "MinIO client", "min.io/docs: mc", "MC_CONFIG_DIR"},
	{".b2_account_info", "Backblaze B2", "github.com/Backblaze/B2_Command_Line_Tool", "B2_ACCOUNT_INFO"},
	{".config/b2/", "Backblaze B2", "github.com/Backblaze/B2_Command_Line_Tool", ""},
	{".edgerc", "Akamai", "techdocs.akamai.com: authentication credentials", ""},
	{".config/fastly/", "Fastly CLI", "github.com/fastly/cli", ""},

	// hosting and services
	{".fly/config.yml", "flyctl", "github.com/superfly/flyctl", "FLY_CONFIG_DIR/config.yml"},
	{".railway/config.json", "Railway CLI", "github.com/railwayapp/cli", ""},
	{".render/", "Render CLI", "render.com/docs/cli", "RENDER_CLI_CONFIG_PATH"},
	{".heroku/", "Heroku CLI", "devcenter.heroku.com/articles/authentication", ""},
	{".config/heroku/", "Heroku CLI", "devcenter.heroku.com/articles/authentication", ""},
	{".config/netlify/", "Netlify CLI", "github.com/netlify/cli", ""},
	{".netlify/", "Netlify CLI", "github.com/netlify/cli", ""},
	{"Library/Preferences/netlify/", "Netlify CLI", "github.com/netlify/cli", ""},
	{".local/share/com.vercel.cli/", "Vercel CLI", "vercel.com/docs/cli: global options", ""},
	{".now/", "Vercel CLI", "vercel.com/docs/cli: global options", ""},
	{".wrangler/", "Wrangler", "github.com/cloudflare/workers-sdk", ""},
	{".config/.wrangler/", "Wrangler", "github.com/cloudflare/workers-sdk", "WRANGLER_HOME"},
	{"Library/Preferences/.wrangler/", "Wrangler", "github.com/cloudflare/workers-sdk", ""},
	{".cloudflared/", "cloudflared", "developers.cloudflare.com: tunnel permissions", ""},
	{".config/ngrok/", "ngrok", "ngrok.com/docs/agent/config", ""},
	{".ngrok2/", "ngrok", "ngrok.com/docs/agent/config", ""},
	{".ngrok/", "ngrok", "ngrok.com/docs/agent/config", ""},
	{".supabase/", "Supabase CLI", "supabase.com/docs/reference/cli/supabase-login", ""},
	{".config/configstore/", "Firebase CLI", "github.com/firebase/firebase-tools; configstore of npm", ""},
	{".config/firebase/", "Firebase CLI", "github.com/firebase/firebase-tools", ""},
	{".config/stripe/", "Stripe CLI", "docs.stripe.com/stripe-cli: login", ""},
	{".config/shopify*", "Shopify CLI", "github.com/Shopify/cli", ""},
	{"Library/Preferences/shopify*", "Shopify CLI", "github.com/Shopify/cli", ""},
	{".config/planetscale/", "PlanetScale CLI", "github.com/planetscale/cli", ""},
	{".config/neonctl/", "Neon CLI", "github.com/neondatabase/neonctl", ""},
	{".config/turso/", "Turso CLI", "github.com/tursodatabase/turso-cli", ""},
	{".upstash.json", "Upstash CLI", "github.com/upstash/cli", ""},
	{".expo/", "Expo", "docs.expo.dev: login", ""},
	{".sentryclirc", "Sentry CLI", "docs.sentry.io/cli/configuration", "SENTRY_PROPERTIES"},
	{".newrelic/", "New Relic CLI", "github.com/newrelic/newrelic-cli", ""},
	{".dogrc", "Datadog", "github.com/DataDog/datadogpy", ""},
	{".circleci/", "CircleCI CLI", "circleci.com/docs/local-cli", ""},
	{".travis/", "Travis CLI", "github.com/travis-ci/travis.rb", "TRAVIS_CONFIG_PATH"},
	{".config/buildkite.yaml", "Buildkite CLI", "github.com/buildkite/cli", ""},
	{".config/depot/", "Depot CLI", "depot.dev/docs/cli", ""},
	{".earthly/", "Earthly", "docs.earthly.dev: configuration", ""},
	{".config/coderv2/", "Coder", "coder.com/docs/reference/cli", "CODER_CONFIG_DIR"},
	{".slack/", "Slack CLI", "docs.slack.dev: Slack CLI authorization", ""},
	{".config/.jira/", "jira-cli", "github.com/ankitpokhrel/jira-cli", "JIRA_CONFIG_FILE"},
	{".jira.d/", "go-jira", "github.com/go-jira/jira", ""},
	{".config/acli/", "Atlassian CLI", "developer.atlassian.com/cloud/acli", ""},

	// forges
	{".git-credentials", "git", "git-credential-store(1)", ""},
	{".config/git/credentials", "git", "git-credential-store(1)", ""},
	{".gitcookies", "Gerrit", "git-config(1) http.cookieFile", ""},
	{".gcm/", "Git Credential Manager", "github.com/git-ecosystem/git-credential-manager: credstores", "GCM_PLAINTEXT_STORE_PATH"},
	{".config/gh/", "gh", "cli.github.com/manual: gh help environment", "GH_CONFIG_DIR"},
	{".config/hub", "hub", "hub(1): CONFIGURATION", ""},
	{".config/glab-cli/", "glab", "gitlab.com/gitlab-org/cli", "GLAB_CONFIG_DIR"},
	{".config/tea/", "tea", "gitea.com/gitea/tea", ""},
	{".config/hut/", "hut", "git.sr.ht/~xenrox/hut", ""},
	{".arcrc", "Arcanist", "secure.phabricator.com: Arcanist User Guide", ""},

	// packages
	{".npmrc", "npm", "docs.npmjs.com/cli/configuring-npm/npmrc", "NPM_CONFIG_USERCONFIG npm_config_userconfig"},
	{".yarnrc", "Yarn", "classic.yarnpkg.com/docs/yarnrc", ""},
	{".yarnrc.yml", "Yarn", "yarnpkg.com/configuration/yarnrc", ""},
	{".config/pnpm/", "pnpm", "pnpm.io/npmrc", ""},
	{"Library/Preferences/pnpm/", "pnpm", "pnpm.io/npmrc", ""},
	{".bunfig.toml", "Bun", "bun.sh/docs/runtime/bunfig", ""},
	{".pypirc", "PyPI", "packaging.python.org/specifications/pypirc", ""},
	{".config/pip/", "pip", "pip.pypa.io: configuration", "PIP_CONFIG_FILE"},
	{".pip/", "pip", "pip.pypa.io: configuration", ""},
	{".config/pypoetry/", "Poetry", "python-poetry.org/docs/configuration", "POETRY_CONFIG_DIR"},
	{"Library/Preferences/pypoetry/", "Poetry", "python-poetry.org/docs/configuration", ""},
	{".local/share/uv/credentials/", "uv", "docs.astral.sh/uv: authentication", "UV_CREDENTIALS_DIR"},
	{".continuum/", "Anaconda", "docs.anaconda.com: anaconda-client", ""},
	{".anaconda/", "Anaconda", "anaconda.github.io/anaconda-auth", ""},
	{".cargo/credentials", "Cargo", "doc.rust-lang.org/cargo/reference/config.html: credentials", "CARGO_HOME/credentials"},
	{".cargo/credentials.toml", "Cargo", "doc.rust-lang.org/cargo/reference/config.html: credentials", "CARGO_HOME/credentials.toml"},
	{".gem/credentials", "RubyGems", "guides.rubygems.org/command-reference: gem signin", ""},
	{".local/share/gem/credentials", "RubyGems", "guides.rubygems.org/command-reference: gem signin", ""},
	{".bundle/config", "Bundler", "bundler.io/man/bundle-config", "BUNDLE_USER_CONFIG"},
	{".composer/auth.json", "Composer", "getcomposer.org/doc/articles/authentication-for-private-packages.md", ""},
	{".config/composer/auth.json", "Composer", "getcomposer.org/doc/articles/authentication-for-private-packages.md", "COMPOSER_HOME/auth.json"},
	{".m2/settings.xml", "Maven", "maven.apache.org/settings.html", ""},
	{".m2/settings-security.xml", "Maven", "maven.apache.org/guides/mini/guide-encryption.html", ""},
	{".gradle/gradle.properties", "Gradle", "docs.gradle.org: build environment", "GRADLE_USER_HOME/gradle.properties"},
	{".ivy2/.credentials", "sbt", "scala-sbt.org: publishing, credentials", ""},
	{".sbt/.credentials", "sbt", "scala-sbt.org: publishing, credentials", ""},
	{".nuget/NuGet/NuGet.Config", "NuGet", "learn.microsoft.com/nuget: configuring NuGet behavior", ""},
	{".config/NuGet/", "NuGet", "learn.microsoft.com/nuget: configuring NuGet behavior", ""},
	{".hex/", "Hex", "hexdocs.pm/hex: mix hex.config", "HEX_HOME"},
	{".config/dart/pub-credentials.json", "pub", "dart.dev/tools/pub", ""},
	{".pub-cache/credentials.json", "pub", "dart.dev/tools/pub", "PUB_CACHE/credentials.json"},
	{".jfrog/", "JFrog CLI", "docs.jfrog-applications.jfrog.io/jfrog-cli", "JFROG_CLI_HOME_DIR"},

	// containers and infrastructure
	{".docker/", "Docker", "docs.docker.com/reference/cli/docker/login", "DOCKER_CONFIG"},
	{".dockercfg", "Docker", "docs.docker.com/reference/cli/docker/login", ""},
	{".config/containers/", "Podman", "containers-auth.json(5)", "REGISTRY_AUTH_FILE"},
	{".kube/", "kubectl", "kubernetes.io: organizing cluster access", "KUBECONFIG"},
	{".minikube/", "minikube", "minikube.sigs.k8s.io", "MINIKUBE_HOME"},
	{".config/helm/", "Helm", "helm.sh/docs/helm/helm", "HELM_CONFIG_HOME HELM_REGISTRY_CONFIG"},
	{"Library/Preferences/helm/", "Helm", "helm.sh/docs/helm/helm", ""},
	{".rancher/", "Rancher CLI", "github.com/rancher/cli", ""},
	{".config/argocd/", "Argo CD", "argo-cd.readthedocs.io: argocd login", "ARGOCD_CONFIG_DIR"},
	{".argocd/", "Argo CD", "argo-cd.readthedocs.io: argocd login", ""},
	{".talos/", "talosctl", "talos.dev: talosctl", "TALOSCONFIG"},
	{".terraform.d/", "Terraform", "developer.hashicorp.com/terraform/cli/config", ""},
	{".terraformrc", "Terraform", "developer.hashicorp.com/terraform/cli/config", "TF_CLI_CONFIG_FILE"},
	{".tofurc", "OpenTofu", "opentofu.org/docs/cli/config", ""},
	{".vault-token", "Vault", "developer.hashicorp.com/vault/docs/commands: token helper", ""},
	{".vagrant.d/data/vagrant_login_token", "Vagrant", "developer.hashicorp.com/vagrant", "VAGRANT_HOME/data/vagrant_login_token"},
	{".pulumi/credentials.json", "Pulumi", "pulumi.com/docs/iac/cli/commands/pulumi_login", "PULUMI_HOME/credentials.json"},
	{".chef/", "Chef", "docs.chef.io/workstation/knife_setup", ""},
	{".puppetlabs/", "Puppet", "help.puppet.com: puppet access", ""},
	{".ansible/galaxy_token", "Ansible", "docs.ansible.com: galaxy configuration", "ANSIBLE_GALAXY_TOKEN_PATH"},
	{".spacelift/", "spacectl", "github.com/spacelift-io/spacectl", ""},
	{".config/infracost/", "Infracost", "infracost.io/docs", ""},

	// passwords and keys for secrets
	{".password-store/", "pass", "pass(1)", "PASSWORD_STORE_DIR"},
	{".local/share/gopass/", "gopass", "github.com/gopasspw/gopass", ""},
	{".config/gopass/", "gopass", "github.com/gopasspw/gopass", ""},
	{".1password/", "1Password", "developer.1password.com/docs/cli", ""},
	{".config/op/", "1Password", "developer.1password.com/docs/cli", "OP_CONFIG_DIR"},
	{".op/", "1Password", "developer.1password.com/docs/cli", ""},
	{".config/1Password/", "1Password", "developer.1password.com/docs/cli", ""},
	{".config/Bitwarden/", "Bitwarden", "bitwarden.com/help/data-storage", ""},
	{".config/Bitwarden CLI/", "Bitwarden", "bitwarden.com/help/data-storage", "BITWARDENCLI_APPDATA_DIR"},
	{".config/rbw/", "rbw", "github.com/doy/rbw", ""},
	{".cache/rbw/", "rbw", "github.com/doy/rbw", ""},
	{".local/share/rbw/", "rbw", "github.com/doy/rbw", ""},
	{".local/share/lpass/", "LastPass CLI", "lpass(1)", "LPASS_HOME"},
	{".lpass/", "LastPass CLI", "lpass(1)", ""},
	{".config/keybase/", "Keybase", "book.keybase.io", ""},
	{".local/share/keybase/", "Keybase", "book.keybase.io", ""},
	{".config/keepassxc/", "KeePassXC", "keepassxc.org/docs", ""},
	{".cache/keepassxc/", "KeePassXC", "keepassxc.org/docs", ""},
	{"*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{"Desktop/*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{"Documents/*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{"Downloads/*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{"Dropbox/*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{"Nextcloud/*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{"Passwords/*.kdb*", "KeePass", "keepass.info/help/base/repair.html", ""},
	{".config/sops/", "SOPS", "getsops.io/docs", "SOPS_AGE_KEY_FILE"},
	{".config/age/", "age", "github.com/FiloSottile/age", ""},
	{".doppler/", "Doppler", "docs.doppler.com/docs/cli", "DOPPLER_CONFIG_DIR"},
	{".infisical/", "Infisical", "infisical.com/docs/cli", ""},
	{".akeyless/", "Akeyless", "docs.akeyless.io/docs/cli", ""},
	{".local/share/keyrings/", "GNOME Keyring", "wiki.gnome.org/Projects/GnomeKeyring", ""},
	{".gnome2/keyrings/", "GNOME Keyring", "wiki.gnome.org/Projects/GnomeKeyring", ""},
	{".local/share/kwalletd/", "KWallet", "docs.kde.org: kwallet5", ""},
	{".kde/share/apps/kwallet/", "KWallet", "docs.kde.org: kwallet5", ""},
	{".config/kwalletrc", "KWallet", "docs.kde.org: kwallet5", ""},
	{".local/share/python_keyring/", "keyring", "keyring.readthedocs.io; keyrings.alt", ""},
	{".pki/", "NSS", "firefox-source-docs.mozilla.org: NSS shared database", ""},
	{"Library/Keychains/", "macOS Keychain", "support.apple.com: Keychain Access", ""},
	{"Library/Group Containers/", "macOS applications", "developer.apple.com: app groups", ""},
	{"Library/Application Support/", "macOS applications", "developer.apple.com: File System Programming Guide", ""},
	{".env", "dotenv", "github.com/motdotla/dotenv", ""},
	{".config/environment.d/", "systemd", "environment.d(5)", ""},

	// databases and data
	{".pgpass", "PostgreSQL", "postgresql.org/docs: The Password File", "PGPASSFILE"},
	{".pg_service.conf", "PostgreSQL", "postgresql.org/docs: The Connection Service File", "PGSERVICEFILE"},
	{".my.cnf", "MySQL", "dev.mysql.com/doc: Using Option Files", ""},
	{".mylogin.cnf", "MySQL", "dev.mysql.com/doc: mysql_config_editor", "MYSQL_TEST_LOGIN_FILE"},
	{".odbc.ini", "unixODBC", "unixodbc.org", "ODBCINI"},
	{".config/atlascli/", "Atlas CLI", "mongodb.com/docs/atlas/cli", ""},
	{".cassandra/", "Cassandra", "cassandra.apache.org/doc: cqlsh", ""},
	{".influxdbv2/", "InfluxDB", "docs.influxdata.com: influx config", "INFLUX_CONFIGS_PATH"},
	{".clickhouse-client/", "ClickHouse", "clickhouse.com/docs/interfaces/cli", ""},
	{".cockroach-certs/", "CockroachDB", "cockroachlabs.com/docs: cockroach cert", "COCKROACH_CERTS_DIR"},
	{".duckdb/stored_secrets/", "DuckDB", "duckdb.org/docs: secrets manager", ""},
	{".local/share/DBeaverData/", "DBeaver", "dbeaver.com/docs: security in DBeaver", ""},
	{".databrickscfg", "Databricks CLI", "docs.databricks.com: configuration profiles", "DATABRICKS_CONFIG_FILE"},
	{".databricks/", "Databricks CLI", "docs.databricks.com: OAuth token cache", ""},
	{".snowflake/", "Snowflake CLI", "docs.snowflake.com: connections.toml", "SNOWFLAKE_HOME"},
	{".config/snowflake/", "Snowflake CLI", "docs.snowflake.com: connections.toml", ""},
	{".snowsql/", "SnowSQL", "docs.snowflake.com: configuring SnowSQL", ""},
	{".dbt/", "dbt", "docs.getdbt.com: profiles.yml", "DBT_PROFILES_DIR/profiles.yml"},
	{".kaggle/", "Kaggle", "github.com/Kaggle/kaggle-api", "KAGGLE_CONFIG_DIR/kaggle.json"},
	{".config/kaggle/", "Kaggle", "github.com/Kaggle/kaggle-api", ""},
	{".jupyter/", "Jupyter", "jupyter-server.readthedocs.io: security", "JUPYTER_CONFIG_DIR"},
	{".local/share/jupyter/runtime/", "Jupyter", "docs.jupyter.org: common directories", "JUPYTER_RUNTIME_DIR"},

	// models and agents
	{".huggingface/", "Hugging Face", "huggingface.co/docs/huggingface_hub: environment variables", "HF_TOKEN_PATH"},
	{".cache/huggingface/token", "Hugging Face", "huggingface.co/docs/huggingface_hub: environment variables", "HF_HOME/token"},
	{".cache/huggingface/stored_tokens", "Hugging Face", "huggingface.co/docs/huggingface_hub: environment variables", "HF_HOME/stored_tokens"},
	{".config/wandb/", "Weights & Biases", "docs.wandb.ai: environment variables", "WANDB_CONFIG_DIR"},
	{".config/replicate/", "Replicate CLI", "github.com/replicate/cli", ""},
	{".modal.toml", "Modal", "modal.com/docs/reference/modal.config", "MODAL_CONFIG_PATH"},
	{".config/openai/", "OpenAI", "github.com/openai", ""},
	{".openai/", "OpenAI", "github.com/openai", ""},
	{".config/anthropic/", "Anthropic", "github.com/anthropics", ""},
	{".anthropic/", "Anthropic", "github.com/anthropics", ""},
	{".config/io.datasette.llm/", "llm", "llm.datasette.io: API key management", "LLM_USER_PATH"},
	{".config/shell_gpt/", "ShellGPT", "github.com/TheR1D/shell_gpt", ""},
	{".config/fabric/", "Fabric", "github.com/danielmiessler/Fabric", ""},
	{".ollama/id_ed25519", "Ollama", "docs.ollama.com", ""},
	{".claude/", "Claude Code", "code.claude.com/docs: authentication", "CLAUDE_CONFIG_DIR"},
	{".claude.json", "Claude Code", "code.claude.com/docs: settings", ""},
	{".codex/", "Codex", "developers.openai.com/codex: auth", "CODEX_HOME"},
	{".gemini/", "Gemini CLI", "github.com/google-gemini/gemini-cli", ""},
	{".qwen/", "Qwen Code", "github.com/QwenLM/qwen-code", ""},
	{".config/github-copilot/", "GitHub Copilot", "github.com/github/copilot.vim", ""},
	{".copilot/", "GitHub Copilot", "docs.github.com/copilot: Copilot CLI", "COPILOT_HOME"},
	{".cursor/", "Cursor", "cursor.com/docs/cli", "CURSOR_CONFIG_DIR"},
	{".config/cursor/", "Cursor", "cursor.com/docs/cli", ""},
	{".config/Cursor/", "Cursor", "cursor.com/docs", ""},
	{".codeium/", "Windsurf", "docs.windsurf.com", ""},
	{".config/Windsurf/", "Windsurf", "docs.windsurf.com", ""},
	{".continue/", "Continue", "docs.continue.dev: configuration", ""},
	{".cline/", "Cline", "docs.cline.bot", "CLINE_DIR"},
	{".aider/", "Aider", "aider.chat/docs/config", ""},
	{".aider.conf.yml", "Aider", "aider.chat/docs/config", ""},
	{".config/goose/", "Goose", "block.github.io/goose: configuration files", ""},
	{".config/opencode/", "opencode", "opencode.ai/docs", ""},
	{".local/share/opencode/auth.json", "opencode", "opencode.ai/docs/providers", ""},
	{".local/share/opencode/mcp-auth.json", "opencode", "opencode.ai/docs/mcp-servers", ""},
	{".config/amp/", "Amp", "ampcode.com/manual", ""},
	{".local/share/amp/secrets.json", "Amp", "ampcode.com/manual", ""},
	{".factory/", "Factory", "docs.factory.ai/cli", ""},

	// editors
	{".config/Code/", "VS Code", "code.visualstudio.com/docs: settings", ""},
	{".config/Code - Insiders/", "VS Code", "code.visualstudio.com/docs: settings", ""},
	{".vscode-server/data/User/", "VS Code", "code.visualstudio.com/docs/remote", ""},
	{".config/VSCodium/", "VSCodium", "github.com/VSCodium/vscodium", ""},
	{".config/JetBrains/*/c.kdbx", "JetBrains IDEs", "jetbrains.com/help/idea: passwords", ""},
	{".config/JetBrains/*/c.pwd", "JetBrains IDEs", "jetbrains.com/help/idea: passwords", ""},
	{".viminfo", "Vim", "vimhelp.org: viminfo", ""},

	// mail and chat
	{".authinfo", "Emacs", "gnu.org/software/emacs/manual: auth-source", ""},
	{".authinfo.gpg", "Emacs", "gnu.org/software/emacs/manual: auth-source", ""},
	{".msmtprc", "msmtp", "msmtp(1)", ""},
	{".config/msmtp/", "msmtp", "msmtp(1)", ""},
	{".mbsyncrc", "isync", "mbsync(1)", ""},
	{".offlineimaprc", "OfflineIMAP", "offlineimap(1)", ""},
	{".fetchmailrc", "fetchmail", "fetchmail(1)", ""},
	{".muttrc", "Mutt", "mutt(1)", ""},
	{".mutt/", "Mutt", "mutt(1)", ""},
	{".config/mutt/", "Mutt", "mutt(1)", ""},
	{".config/neomutt/", "NeoMutt", "neomutt(1)", ""},
	{".config/himalaya/", "Himalaya", "github.com/pimalaya/himalaya", ""},
	{".thunderbird/", "Thunderbird", "support.mozilla.org: profiles", ""},
	{"Library/Mail/", "macOS Mail", "support.apple.com", ""},
	{"Library/Messages/", "macOS Messages", "support.apple.com", ""},
	{".config/Slack/", "Slack", "firejail: disable-programs.inc", ""},
	{".config/discord/", "Discord", "firejail: disable-programs.inc", ""},
	{".config/Signal/", "Signal", "firejail: disable-programs.inc", ""},
	{".config/Element/", "Element", "firejail: disable-programs.inc", ""},
	{".local/share/TelegramDesktop/", "Telegram", "firejail: disable-programs.inc", ""},
	{".config/weechat/", "WeeChat", "weechat.org/doc", "WEECHAT_HOME"},
	{".weechat/", "WeeChat", "weechat.org/doc", ""},
	{".irssi/", "Irssi", "irssi(1)", ""},
	{".purple/", "Pidgin", "firejail: disable-programs.inc", ""},

	// wallets
	{".bitcoin/", "Bitcoin Core", "bitcoin.org: data directory", ""},
	{".electrum/", "Electrum", "electrum.readthedocs.io", ""},
	{".ethereum/keystore/", "Geth", "geth.ethereum.org/docs: account management", ""},
	{".foundry/keystores/", "Foundry", "getfoundry.sh: cast wallet", ""},
	{".config/solana/", "Solana CLI", "docs.anza.xyz/cli", ""},
	{".near-credentials/", "NEAR CLI", "github.com/near/near-cli", ""},
	{".sui/", "Sui CLI", "docs.sui.io/references/cli", ""},

	// browsers
	{".mozilla/", "Firefox", "support.mozilla.org: profiles", ""},
	{".cache/mozilla/", "Firefox", "support.mozilla.org: profiles", ""},
	{"snap/firefox/", "Firefox", "snapcraft.io/docs: data locations", ""},
	{".config/google-chrome/", "Chrome", "chromium.googlesource.com: user_data_dir.md", ""},
	{".config/google-chrome-beta/", "Chrome", "chromium.googlesource.com: user_data_dir.md", ""},
	{".cache/google-chrome/", "Chrome", "chromium.googlesource.com: user_data_dir.md", ""},
	{".config/chromium/", "Chromium", "chromium.googlesource.com: user_data_dir.md", ""},
	{".cache/chromium/", "Chromium", "chromium.googlesource.com: user_data_dir.md", ""},
	{"snap/chromium/", "Chromium", "snapcraft.io/docs: data locations", ""},
	{".config/BraveSoftware/", "Brave", "firejail: disable-programs.inc", ""},
	{".config/microsoft-edge/", "Edge", "firejail: disable-programs.inc", ""},
	{".config/vivaldi/", "Vivaldi", "firejail: disable-programs.inc", ""},
	{".config/opera/", "Opera", "firejail: disable-programs.inc", ""},
	{".config/zen/", "Zen", "firejail: disable-programs.inc", ""},
	{".zen/", "Zen", "firejail: disable-programs.inc", ""},
	{".librewolf/", "LibreWolf", "firejail: disable-programs.inc", ""},
	{".waterfox/", "Waterfox", "firejail: disable-programs.inc", ""},
	{"Library/Safari/", "Safari", "support.apple.com", ""},
	{"Library/Cookies/", "Safari", "support.apple.com", ""},
	{".var/app/", "Flatpak applications", "docs.flatpak.org: sandbox permissions", ""},

	// histories
	{".bash_history", "Bash", "bash(1) HISTFILE", "HISTFILE"},
	{".bash_sessions/", "Bash", "macOS /etc/bashrc_Apple_Terminal", ""},
	{".local/state/bash/", "Bash", "wiki.archlinux.org: XDG Base Directory", ""},
	{".zsh_history", "Zsh", "zshparam(1) HISTFILE", ""},
	{".zhistory", "Zsh", "zshparam(1) HISTFILE", ""},
	{".histfile", "Zsh", "zsh-newuser-install", ""},
	{".zsh_sessions/", "Zsh", "macOS /etc/zshrc_Apple_Terminal", ""},
	{".local/state/zsh/", "Zsh", "wiki.archlinux.org: XDG Base Directory", ""},
	{".history", "tcsh", "tcsh(1)", ""},
	{".sh_history", "ksh", "ksh(1)", ""},
	{".ksh_history", "ksh", "ksh(1)", ""},
	{".ash_history", "BusyBox", "busybox: ash", ""},
	{".local/share/fish/", "fish", "fishshell.com/docs: history", ""},
	{".config/fish/fish_history", "fish", "fishshell.com/docs: history", ""},
	{".config/nushell/history.txt", "Nushell", "nushell.sh/book: history", ""},
	{".local/share/nu/", "Nushell", "nushell.sh/book: history", ""},
	{".local/share/xonsh/", "xonsh", "xon.sh: history", ""},
	{".local/share/atuin/", "Atuin", "docs.atuin.sh", ""},
	{".python_history", "Python", "docs.python.org: PYTHON_HISTORY", "PYTHON_HISTORY"},
	{".node_repl_history", "Node.js", "nodejs.org/api/repl.html", "NODE_REPL_HISTORY"},
	{".irb_history", "IRB", "docs.ruby-lang.org: IRB", ""},
	{".psql_history", "PostgreSQL", "psql(1) HISTFILE", "PSQL_HISTORY"},
	{".mysql_history", "MySQL", "dev.mysql.com/doc: mysql client logging", "MYSQL_HISTFILE"},
	{".sqlite_history", "SQLite", "sqlite.org/cli.html", "SQLITE_HISTORY"},
	{".rediscli_history", "Redis", "redis.io/docs: redis-cli", "REDISCLI_HISTFILE"},
	{".lesshst", "less", "less(1) LESSHISTFILE", "LESSHISTFILE"},
}

// moves are the directories that the XDG Base Directory Specification lets a variable move.
var moves = [...][2]string{
	{".config/", "XDG_CONFIG_HOME"}, {".local/share/", "XDG_DATA_HOME"}, {".local/state/", "XDG_STATE_HOME"}, {".cache/", "XDG_CACHE_HOME"},
}

// Secrets are the places with credentials or typed input of a user, as absolute paths.
type Secrets struct {
	Paths    []string
	Patterns []string // of filepath.Glob
}

// SecretsOf returns the secrets of a user with these homes. variable returns a variable of that user, or "".
func SecretsOf(homes []string, variable func(string) string) (s Secrets) {
	add := func(dir, place string) {
		dir = filepath.Clean(dir)
		switch path := join(dir, place); {
		case !filepath.IsAbs(dir) || within(dir, "/dev"): // HISTFILE=/dev/null
		case slices.ContainsFunc(homes, func(home string) bool { return within(home, path) }): // it cannot be hidden as a whole
		case strings.Contains(place, "*"):
			s.Patterns = append(s.Patterns, join(escape.Replace(dir), place))
		default:
			s.Paths = append(s.Paths, path)
		}
	}
	for _, known := range knownSecrets {
		for _, home := range homes {
			add(home, known.place)
		}
		for _, move := range moves {
			if rest, ok := strings.CutPrefix(known.place, move[0]); ok {
				add(variable(move[1]), rest)
			}
		}
		for _, moved := range strings.Fields(known.moved) {
			name, rest, _ := strings.Cut(moved, "/")
			for _, path := range filepath.SplitList(variable(name)) { // KUBECONFIG lists files
				add(path, rest)
			}
		}
	}
	slices.Sort(s.Paths)
	s.Paths = slices.Compact(s.Paths)
	return s
}

// escape makes a path match itself alone in a pattern.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// matches returns what matches patterns now.
func matches(patterns []string) (list []string) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // a directory's name that is no pattern, although escaped, matches nothing
		}
		list = append(list, found...)
	}
	return list
}
