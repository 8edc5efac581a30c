package conformance

import (
	"context"
	"strings"

	"podstarter/integration/harness"
)

// Directories of credentials: tokens on the submit side, where a credential monitor
// would put them, and Kerberos tickets in the execution points.
const (
	tokenDir  = "/var/lib/condor/conformance_oauth"
	ticketDir = "/var/lib/condor/conformance_krb"
)

var credentialsSetup = Setup{
	Submit: "SEC_CREDENTIAL_DIRECTORY_OAUTH = " + tokenDir + "\n",
	Execute: `SEC_CREDENTIAL_DIRECTORY_KRB = ` + ticketDir + `
SEC_CREDENTIAL_REFRESH = 2
`,
}

// atDelegation are the pairs in which the stock starter can be asked for a proxy.
// Starters of Debian's 23.9 now and then fail to request one, or lose the shadow.
var atDelegation = []string{"25.14+*"}

// That a proxy is renewed while the job runs is in TestRenewedProxy of e2e: a stock
// starter that sends an update just then waits for the shadow, which waits for it.
//
// Services of the cases carry the number of the cluster, since both sides run at
// once for one user. Each job waits on hold until its credentials are there.
var credentialsCases = []Case{
	{Name: "token", Shows: "OAuth tokens: where, their owner, their modes",
		Files: []harness.File{Script("look", `
cd "$_CONDOR_CREDS" && echo "${PWD#$_CONDOR_SCRATCH_DIR}"
for f in . *; do
	[ "$(stat -c %u $f)" = "$(id -u)" ] && echo "$(stat -c %a $f) $f" | tr -d 0-9_ | sed "s/^/$(stat -c %a $f)/"
done
cat *.use
`)},
		Submit: `executable = look
output = out
hold = True
MY.OAuthServicesNeeded = strcat("plain", ClusterId, ",with*handle", ClusterId)`,
		Steps: []Step{token("plain", "first"), token("with_handle", "second"), Tool("condor_release")}},
	{Name: "token-renewed", Shows: "a token that the access point renews while the job runs",
		Files: []harness.File{Script("look", `
cat "$_CONDOR_CREDS"/*
printf waiting >/proc/$$/comm
until grep -q second "$_CONDOR_CREDS"/*; do sleep 0.2; done
cat "$_CONDOR_CREDS"/*
stat -c %a "$_CONDOR_CREDS"/*
ls -A "$_CONDOR_CREDS" | wc -l
`)},
		Submit: `executable = look
output = out
hold = True
MY.OAuthServicesNeeded = strcat("plain", ClusterId)`,
		Steps: []Step{token("plain", "first"), Tool("condor_release"), Runs("waiting"), token("plain", "second")}},
	{Name: "token-missing", Shows: "a job whose token the access point does not have",
		Submit: `arguments = out=never
output = out
MY.OAuthServicesNeeded = strcat("missing", ClusterId)`,
		Fleeting: byChance("the shadow holds the job and leaves; it may hear the starter's complaint before", "021*")},
	{Name: "proxy", Versions: atDelegation, Shows: "an X.509 proxy by delegation: where, its mode, its number of parts",
		Files: []harness.File{harness.Proxy("proxy"), Script("look", lookAtProxy)},
		Submit: `executable = look
output = out
x509userproxy = proxy`},
	{Name: "proxy-without-transfer", Versions: atDelegation, Shows: "an X.509 proxy of a job without file transfer",
		Files: []harness.File{harness.Proxy("proxy")},
		Submit: withoutTransfer + `x509userproxy = proxy
arguments = "-c '[ ""$X509_USER_PROXY"" = ""$_CONDOR_SCRATCH_DIR/proxy"" ] || exit 11; [ ""$(stat -c %a $X509_USER_PROXY)"" = 600 ] || exit 12; [ $(grep -c BEGIN $X509_USER_PROXY) = 3 ] || exit 13; exit 10'"`},
	{Name: "kerberos", Shows: "Kerberos tickets that the execution point has",
		Files: []harness.File{Script("look", `
echo "$KRB5CCNAME" | sed 's|:/.*/dir_[0-9]*/.*|:dir|'
[ "${KRB5CCNAME##*/}" = "slot${_CONDOR_SLOT##*[a-z_]}.cc" ] || echo "${KRB5CCNAME##*/}"
cat "${KRB5CCNAME#FILE:}"
stat -c %a "${KRB5CCNAME#FILE:}"
printf waiting >/proc/$$/comm
until grep -q second "${KRB5CCNAME#FILE:}"; do sleep 0.2; done
cat "${KRB5CCNAME#FILE:}"
`)},
		Submit: `executable = look
output = out
hold = True
transfer_output_files = look
MY.SendCredential = True`,
		Steps: []Step{tickets("first"), Tool("condor_release"), Runs("waiting"), tickets("second")}},
}

// lookAtProxy prints what two proxies of one kind have in common.
const lookAtProxy = `
echo "${X509_USER_PROXY#$_CONDOR_SCRATCH_DIR}"
[ "$(stat -c %u "$X509_USER_PROXY")" = "$(id -u)" ] && stat -c %a "$X509_USER_PROXY"
grep -e ----- "$X509_USER_PROXY"
`

// withoutTransfer makes the job's shell run in /tmp of the execution point,
// whatever files are there: the two sides share no directory.
const withoutTransfer = `executable = /bin/sh
transfer_executable = False
should_transfer_files = NO
when_to_transfer_output =
remote_initialdir = /tmp
MY.FileSystemDomain = TARGET.FileSystemDomain
`

// token gives the job's user a token on the submit side, as a credential monitor
// does: all of it at once, and readable only by root.
func token(service, content string) Step {
	return Do("the token of "+service+" is "+content, func(ctx context.Context, r *Run) error {
		args, _ := r.arguments([]string{service + "<cluster>.use"})
		const script = `umask 077 && mkdir -p "$0/$1" && cat >"$0/$1/$2.new" && mv "$0/$1/$2.new" "$0/$1/$2"`
		_, err := r.Pool.APRoot(ctx, strings.NewReader(content+"\n"), "sh", "-c", script, tokenDir, r.Pool.User.Name, args[0])
		return err
	})
}

// tickets gives Kerberos tickets to all accounts of the execution point.
func tickets(content string) Step {
	return Do("the tickets are "+content, func(ctx context.Context, r *Run) error {
		const script = `mkdir -p "$0" && chmod 755 "$0" && umask 077 && cat >"$0/new" &&
for u in nobody $(condor_config_val -dump _USER | sed -n 's/^SLOT[0-9_]*_USER = //p' | sort -u); do
	cp "$0/new" "$0/$u.new" && mv "$0/$u.new" "$0/$u.cc" || exit; done`
		_, err := r.Pool.PilotInput(ctx, r.Side, strings.NewReader(content+"\n"), "sh", "-c", script, ticketDir)
		return err
	})
}
