package conformance

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podstarter/integration/harness"
)

//go:embed programs/page_plugin.py
var pagePlugin []byte

// urlsSetup has, besides the plugins that come with HTCondor, one in Python, and the web
// server for public input files.
var urlsSetup = Setup{
	Execute:  "FILETRANSFER_PLUGINS = $(FILETRANSFER_PLUGINS), $(LIBEXEC)/box_plugin.py, $(CONFORMANCE_PROGRAMS)/page_plugin.py\n",
	Programs: []harness.File{{Name: "page_plugin.py", Content: pagePlugin}},
	Web: []harness.File{
		{Name: "urls/one", Content: []byte("the first\n")}, {Name: "urls/two", Content: []byte("the second\n")}, {Name: "urls/empty"},
		{Name: "urls/large", Content: []byte(strings.Repeat("sixteen letters\n", 1<<16))},
		{Name: "urls/odd name+[1];%'é", Content: []byte("odd\n")},
		{Name: "urls/program", Content: []byte("#!/bin/sh\necho a program; ls -l \"$0\" | cut -c1-10\n")},
	},
}

// listing is the program of a job whose input is at URLs.
var listing = Script("list", `for f in *; do
	case $f in _condor* | out | err) ;; *) echo "$f $(stat -c '%a %s' "$f") $(head -c 20 "$f" | tr '\n' '~')" ;; esac
done
find . -name '[a-z]*' ! '(' -user "$(id -u)" -a -group "$(id -g)" ')'
`)

// fromWeb runs a listing of what arrived of a job's inputs.
func fromWeb(inputs string) string {
	return "executable = list\noutput = out\ntransfer_input_files = " + inputs + "\n"
}

// once makes the stock plugin try once, and not for minutes (25.14).
const once = "environment = CURL_MAX_RETRY_ATTEMPTS=1\n"

// urlsCases are about files at URLs, with the plugins that HTCondor has.
var urlsCases = []Case{
	{Name: "url-http", Shows: "an input from a web server", Files: []harness.File{listing}, Submit: fromWeb("$(WEB)/urls/one"),
		Steps: []Step{Ends(), transferRecords}},
	{Name: "url-https", Shows: "the same by HTTPS, with an authority that the execution point trusts", Files: []harness.File{listing}, Submit: fromWeb("$(WEBS)/urls/one"),
		Steps: []Step{Ends(), transferRecords}},
	{Name: "url-https-stranger", Shows: "HTTPS with an authority that the execution point does not trust", Files: []harness.File{listing}, Submit: fromWeb("$(STRANGER)/urls/one"),
		Steps: []Step{Ends(), transferRecords}},
	{Name: "url-common", Versions: withCommonFiles, Shows: "a common file from a web server, and one from the access point", Files: []harness.File{Script("list", "cat one own"), {Name: "own", Content: []byte("own\n")}},
		Submit: "executable = list\noutput = out\n+CommonInputFiles = \"$(WEB)/urls/one, own\"\n", Fleeting: byChance("they name the cluster", "requestedcatalogids", "requestedcatalogs")},
	{Name: "url-common-not-found", Versions: withCommonFiles, Shows: "a common file that the web server does not have", Files: []harness.File{Script("list", "cat one")}, Steps: []Step{Event(harness.EventHeld, 1)}, Stuck: true,
		Submit: "executable = list\noutput = out\n+CommonInputFiles = \"$(WEB)/urls/none\"\n", Fleeting: byChance("they name the cluster", "requestedcatalogids", "requestedcatalogs")},
	{Name: "url-not-found", Shows: "a URL that the server does not have, and one that it does", Files: []harness.File{listing}, Submit: fromWeb("$(WEB)/urls/one, $(WEB)/urls/none"),
		Steps: []Step{Ends(), transferRecords}},
	{Name: "url-forbidden", OnRequest: true, Shows: "a URL that the server refuses", Files: []harness.File{listing}, Submit: fromWeb("$(WEB)/forbidden/one")},
	{Name: "url-unreachable", Versions: withNewStarter, Shows: "an address at which nobody listens; the job says how often to try", Files: []harness.File{listing}, Submit: once + fromWeb("$(CLOSED)/one")},
	{Name: "url-cut-off", Versions: withNewStarter, Shows: "a server that breaks off in the middle of a file", Files: []harness.File{listing}, Submit: once + fromWeb("$(WEB)/cut-off/urls/one")},
	{Name: "url-redirect", Shows: "a URL that redirects", Files: []harness.File{listing}, Submit: fromWeb("$(WEB)/moved/urls/one")},
	{Name: "url-circle", OnRequest: true, Shows: "a URL that redirects to itself", Files: []harness.File{listing}, Submit: fromWeb("$(WEB)/circle/one")},
	{Name: "url-several", Shows: "files, directories and URLs of several kinds together",
		Files:  []harness.File{listing, {Name: "local", Content: []byte("local\n")}, {Name: "dir/leaf", Content: []byte("leaf\n")}},
		Submit: fromWeb("$(WEB)/urls/one, local, $(WEBS)/urls/two, dir/, $(WEB)/urls/empty, $(WEB)/urls/large, dav://$(WEB_HOST)/urls/program"),
		Steps:  []Step{Ends(), transferRecords, transferHistory}},
	// A pilot without root offers no file: (the reason file-urls).
	{Name: "url-file", Versions: withNewStarter, Pools: withRoot,
		Shows: "an input that is a file of the pilot container", Files: []harness.File{listing}, Submit: fromWeb("file:///etc/debian_version"),
		Steps: []Step{Ends(), transferRecords, transferHistory}},
	{Name: "url-odd-names", Shows: "URLs with a query, and with odd characters", Files: []harness.File{listing},
		Submit: fromWeb("$(WEB)/urls/one?of=two&and=%2Fthree, $(WEB)/urls/odd%20name+[1];%25'%C3%A9")},
	{Name: "url-same-name", Shows: "two URLs with the same last part, and a file of that name",
		Files:  []harness.File{listing, {Name: "one", Content: []byte("local\n")}},
		Submit: fromWeb("one, $(WEB)/urls/one, $(WEB)/urls/two, $(WEBS)/urls/two")},
	{Name: "url-remapped", Shows: "an input URL with another name in the sandbox", Files: []harness.File{listing},
		Submit: fromWeb("$(WEB)/urls/one") + "MY.TransferInputRemaps = \"one=uno\"\n"},
	{Name: "url-program", Versions: withNewStarter, Shows: "an executable that is an input from a URL", Submit: "executable = program\ntransfer_executable = False\ntransfer_input_files = $(WEB)/urls/program\noutput = out\n"},
	{Name: "url-public", Shows: "input that the owner publishes, from the submit side's web server",
		Files: []harness.File{listing, {Name: "published", Content: []byte("public\n")}}, Submit: fromWeb("") + "public_input_files = published\n",
		Fleeting: byChance("the file's name there is a hash over more than its contents, and its length varies",
			"TransferInputRemaps", "BytesRecvd", "005 *Bytes Received By Job")},
	{Name: "url-proxy", Shows: "a host that is reached only through the site's proxy", Files: []harness.File{listing}, Submit: fromWeb("$(PROXIED)/urls/one"),
		Steps: []Step{Ends(), Note("what slots say of plugins", func(ctx context.Context, r *Run) (string, error) {
			return r.Pool.AP(ctx, "condor_status", "-constraint", `regexp("^slot1@", Name) && `+strings.ReplaceAll(sidePicks(r.Side), "TARGET.", ""), "-af", "http_proxy", "HasFileTransferPluginMethods")
		})}},
	{Name: "url-token", Shows: "a URL for which the plugin takes one of the job's tokens", Files: []harness.File{listing},
		Submit: "hold = True\nMY.OAuthServicesNeeded = \"webtoken, webjson*with\"\n" + fromWeb("webtoken+$(WEBS)/bearer/urls/one, webjson.with+$(WEB)/bearer/urls/two"),
		Steps: []Step{webToken("webtoken", harness.WebToken), webToken("webjson_with", `{"access_token": "`+harness.WebToken+`", "expires_in": 1200}`),
			Tool("condor_release"), Ends(), transferRecords}},
	{Name: "url-token-wrong", Shows: "a token that the server does not accept", Files: []harness.File{listing},
		Submit: "hold = True\nMY.OAuthServicesNeeded = \"wrongtoken\"\n" + fromWeb("wrongtoken+$(WEBS)/bearer/urls/one"),
		Steps:  []Step{webToken("wrongtoken", "not-this"), Tool("condor_release"), Event(harness.EventHeld, 1)}},
	{Name: "url-token-missing", OnRequest: true, Shows: "a URL that requires a token, of a job without any", Files: []harness.File{listing},
		Submit: fromWeb("notoken+$(WEBS)/bearer/urls/one")},
	{Name: "url-python", Shows: "a plugin in Python", Files: []harness.File{listing}, Submit: fromWeb("page://$(WEB_HOST)/urls/one, page://$(WEB_HOST)/urls/large, $(WEB)/urls/two"),
		Steps: []Step{Ends(), transferRecords}},
	{Name: "url-python-fails", OnRequest: true, Shows: "a plugin in Python that fails, and another that does not", Files: []harness.File{listing},
		Submit: fromWeb("page://$(WEB_HOST)/urls/none, $(WEB)/urls/two"), Steps: []Step{Ends(), transferRecords, transferHistory}},
	{Name: "url-stock-python", OnRequest: true, Shows: "one of HTCondor's own plugins in Python, without the token that it needs", Files: []harness.File{listing},
		Submit: fromWeb("box://some/where")},
	{Name: "url-output", Versions: withNewStarter, Shows: "output to a web server, by output_destination, except what the submit side keeps",
		Submit: "arguments = file=one:1 file=dir/leaf:2 out=hello\ntransfer_output_files = one, dir\noutput = out\noutput_destination = $(WEB)" + below + "\n",
		Steps:  []Step{Ends(), uploaded, transferRecords}},
	{Name: "url-output-all", OnRequest: true, Shows: "the same without a list of outputs, by HTTPS",
		Submit: "arguments = file=one:1 file=two:2 out=hello\noutput = out\nerror = err\noutput_destination = $(WEBS)" + below + "\n",
		Steps:  []Step{Ends(), uploaded}},
	{Name: "url-output-remaps", Shows: "outputs remapped to URLs, and others",
		Submit: "arguments = file=one:1 file=two:2 file=three:3 out=hello\ntransfer_output_files = one, two, three\noutput = out\n" +
			"transfer_output_remaps = \"one=$(WEB)" + below + "uno; two=dos; three=page://$(WEB_HOST)" + below + "tres\"\n",
		Steps: []Step{Ends(), uploaded, transferRecords}},
	{Name: "url-output-stdout", Versions: withNewStarter, Shows: "standard output to a URL",
		Submit: "arguments = out=hello\noutput = $(WEB)" + below + "out" + shortLease, Steps: []Step{Ends(), uploaded}},
	{Name: "url-output-token", Shows: "output to a web server that requires a token",
		Submit: "hold = True\nMY.OAuthServicesNeeded = \"webtoken\"\narguments = file=one:1\ntransfer_output_files = one\n" +
			"transfer_output_remaps = \"one=webtoken+$(WEBS)/put-bearer/$Fnx(DIRECTORY)/one\"\n",
		Steps: []Step{webToken("webtoken", harness.WebToken), Tool("condor_release"), Ends(), uploaded}},
	{Name: "url-output-refused", Versions: withNewStarter, Shows: "output that the server refuses, and some that it accepts",
		Submit: "arguments = file=one:1 file=two:2\ntransfer_output_files = one, two\n" +
			"transfer_output_remaps = \"one=$(WEB)/put-bearer/$Fnx(DIRECTORY)/one; two=$(WEB)" + below + "two\"" + shortLease,
		Steps: []Step{Ends(), uploaded, transferRecords}},
	{Name: "url-output-full", OnRequest: true, Shows: "output to a server whose disk is full",
		Submit: "arguments = file=one:1 out=hello\noutput = out\ntransfer_output_files = one\noutput_destination = $(WEB)/put-full/" + shortLease,
		Steps:  []Step{Ends(), uploaded}},
}

// below is where the web server stores a job's output: under the name of its directory.
const below = "/put/$Fnx(DIRECTORY)/"

// webToken is [token] for a service whose token is the same for all jobs.
func webToken(service, content string) Step {
	return Do("the token of "+service, func(ctx context.Context, r *Run) error {
		const script = `umask 077 && mkdir -p "$0/$1" && cat >"$0/$1/$2.$3" && mv "$0/$1/$2.$3" "$0/$1/$2"`
		_, err := r.Pool.APRoot(ctx, strings.NewReader(content+"\n"), "sh", "-c", script, tokenDir, r.Pool.User.Name, service+".use", r.Job().ID())
		return err
	})
}

// transferRecords notes what the submit side keeps about the runs of plugins.
var transferRecords = Note("what plugins did", func(ctx context.Context, r *Run) (string, error) {
	if strings.HasPrefix(r.Pool.Versions.AP, "23.") {
		return "this version keeps nothing of it", nil
	}
	out, err := r.Pool.AP(ctx, "condor_history", "-epochs", "-type", "INPUT,OUTPUT,CHECKPOINT", "-long", r.Job().ID())
	if err != nil {
		return "", err
	}
	var kept []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "Plugin") {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	slices.Sort(kept)
	return strings.Join(kept, "\n"), nil
})

// uploaded notes what arrived at the web server's /put/ below the name of the job's directory.
var uploaded = Note("what was uploaded", func(_ context.Context, r *Run) (string, error) {
	web, err := r.Pool.Web()
	if err != nil {
		return "", err
	}
	return filesBelow(web.UploadedTo(filepath.Base(r.Job().Dir)), r.Job())
})

// filesBelow lists the files that the web server has stored below a directory.
func filesBelow(root string, job harness.Job) (string, error) {
	var lines []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		lines = append(lines, fmt.Sprintf("%s %s", strings.TrimPrefix(name, root), content(text, job)))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "nothing", nil
	}
	return strings.Join(lines, "\n"), err
}
