// Package catalogs does what a shadow wants done about common input files: fetch them into
// a data slot, tell the startd, and give them to a job (HTCondor
// src/condor_starter.V6.1/starter_guidance.cpp:handleJobSetupCommand).
package catalogs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/sandbox"
	"podstarter/sandbox/commonfiles"
	"podstarter/starter/submitside"
)

// Options are what [Catalogs] work with.
type Options struct {
	User       string // the job's, as its ad has it
	SubmitHost string // where the claim was activated from, as the startd says
	Execute    string // the EXECUTE directory, in which data slots are found
	Sandbox    *sandbox.Sandbox
	Executable string // of the job, by its name in the sandbox; empty for none
	Policy     commonfiles.Policy
	// Digests says that jobs have this process's user and could change what is kept. A job then
	// gets files only if they are those that the access point names.
	Digests bool
	// Machine and Secrets are the slot's ads. The secrets may be nil.
	Machine, Secrets *classads.Ad
	// Pretend makes each mapping a failure to the shadow: the job's ReportMappingFailure,
	// which HTCondor's own tests set.
	Pretend bool
	Startd  Startd
	// Fetch brings files in from a socket of the shadow's.
	Fetch func(ctx context.Context, from Source, into *sandbox.Staging) error
	// TellStartd sends an update to the startd only.
	TellStartd func(ctx context.Context, ad *classads.Ad)
	// Kept hears that there is nothing left to do but to wait.
	Kept func()
	Log  *slog.Logger
}

// Startd hears of catalogs.
type Startd interface {
	Color(ctx context.Context, ad *classads.Ad) (*classads.Ad, error)
	AnnounceCatalog(ctx context.Context, ad *classads.Ad) (*classads.Ad, error)
}

// Source is where a shadow sends common files from.
type Source struct{ Socket, Key string }

// Catalogs follow a shadow's guidance about common files.
type Catalogs struct{ Options }

// New returns catalogs of one activation.
func New(o Options) *Catalogs { return &Catalogs{o} }

// ForJob are the commands that a job's slot follows.
func (c *Catalogs) ForJob() map[string]submitside.Follow {
	return map[string]submitside.Follow{shadow.CommandMapCommon: c.share}
}

// ForDataSlot are the commands that a data slot follows.
func (c *Catalogs) ForDataSlot() map[string]submitside.Follow {
	return map[string]submitside.Follow{shadow.CommandStageCommon: c.stage, shadow.CommandColorSlot: c.announce}
}

// answer is the context of the next question.
func answer(command string, done bool) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("Command", command)
	ad.SetBool("Result", done)
	return ad
}

// malformed says what is missing, as stock does, and means to carry on.
func (c *Catalogs) malformed(what string) *classads.Ad {
	c.Log.Info("Guidance was malformed (" + what + "), carrying on.")
	return nil
}

// texts reads attributes that have to be strings. missing is the first that is not.
func texts(ad *classads.Ad, names ...string) (values []string, missing string) {
	for _, name := range names {
		value, err := ad.GetString(name)
		if err != nil {
			return nil, "no " + name + " attribute"
		}
		values = append(values, value)
	}
	return values, ""
}

// Results of a request that failed before any file came (src/condor_utils/guidance.h).
const internalError = 1

// stage fetches common files and keeps them.
func (c *Catalogs) stage(ctx context.Context, guidance *classads.Ad) *classads.Ad {
	const command = shadow.CommandStageCommon
	said, missing := texts(guidance, "CommonInputFiles", "Name", "TransferSocket", "TransferKey")
	if missing != "" {
		return c.malformed(missing)
	}
	into, err := c.Sandbox.Stage(ctx)
	if err != nil {
		c.Log.Error("Failed to create() staging directory, reporting failure.", "error", err)
		ad := answer(command, false)
		ad.SetInt("RequestResultCode", internalError)
		ad.SetInt("RequestResultSubCode", -1)
		return ad
	}
	c.Log.Info("Starting common files transfer.")
	err = c.Fetch(ctx, Source{Socket: said[2], Key: said[3]}, into)
	place := string(c.key(said[1]))
	if err == nil {
		c.Log.Info("Finished common files transfer: success.")
		var name commonfiles.Name
		if name, err = into.Keep(ctx, c.key(said[1]), c.Digests); c.Digests {
			place = string(name)
		}
	} else {
		c.Log.Info("Finished common files transfer: failure.")
		err = errors.Join(err, into.Discard(ctx))
	}
	if err != nil {
		c.Log.Error("The common files cannot be kept", "error", err)
	}
	ad := answer(command, err == nil)
	// Starters find catalogs by their key. The shadow tells the startd this, from which each
	// job's shadow has it: no job can change it on that way (see share).
	ad.SetString("StagingDir", place)
	size, _, err := c.Sandbox.Usage(ctx)
	if err != nil {
		c.Log.Warn("The size of the common files is not known exactly", "error", err)
	}
	ad.SetInt("Size", size)
	usage := classads.NewAd()
	usage.SetInt("DiskUsage", size)
	c.TellStartd(ctx, usage)
	return ad
}

// key finds the catalog that this job's access point gave this name.
func (c *Catalogs) key(name string) commonfiles.Key {
	return commonfiles.KeyOf(c.User, c.SubmitHost, name)
}

// announce tells the startd which catalogs this slot has.
func (c *Catalogs) announce(ctx context.Context, guidance *classads.Ad) *classads.Ad {
	color, err := guidance.GetAd("ColorAd")
	if err != nil {
		return c.malformed("no ColorAd attribute")
	}
	list, err := color.GetAd("CommonCatalogsAd")
	if err != nil {
		return c.malformed("no CommonCatalogsAd attribute in the ColorAd")
	}
	version := list.IntOr("CondorVersion", -1) // so it is spelled
	switch version {
	case 1:
		err = judge(c.Startd.Color(ctx, color))
	case 2:
		items, e := list.GetList("CommonCatalogsList")
		if e != nil {
			return c.malformed("CommonCatalogsList was not a list")
		}
		err = c.announceAll(ctx, items)
	default:
		return c.malformed(fmt.Sprintf("version %d of the common catalogs is not known", version))
	}
	if err != nil {
		c.Log.Error("Unable to announce the common files; their jobs get them as ordinary input, or wait", "error", err)
	}
	split := ""
	if c.Secrets != nil {
		split = c.Secrets.StringOr("SplitClaimId", "")
	}
	if split == "" {
		c.Log.Warn("The secrets ad did not contain SplitClaimId, or it wasn't a string.")
	}
	c.Kept()
	ad := answer(shadow.CommandColorSlot, err == nil && split != "")
	ad.SetString("SplitClaimId", split)
	ad.SetAd("SlotAd", c.Machine.Clone())
	if version == 1 {
		ad.SetInt("CommonInputFilesSizeMB", -1)
	}
	return ad
}

// announceAll tells the startd about catalogs, until the first that it refuses.
func (c *Catalogs) announceAll(ctx context.Context, items []classads.Value) error {
	for _, item := range items {
		catalog, ok := item.Ad()
		if !ok {
			return errors.New("an entry of CommonCatalogsList is no ad")
		}
		if err := judge(c.Startd.AnnounceCatalog(ctx, catalog)); err != nil {
			return err
		}
	}
	return nil
}

// judge is the error in a startd's answer.
func judge(reply *classads.Ad, err error) error {
	if err == nil && !reply.BoolOr("Result", false) {
		err = fmt.Errorf("the startd refuses: %s", reply.StringOr("ErrorString", "it does not say why"))
	}
	return err
}

// share gives the job the files of a catalog.
func (c *Catalogs) share(ctx context.Context, guidance *classads.Ad) *classads.Ad {
	const command = shadow.CommandMapCommon
	// StagingDir is what stage said. With digests it tells the catalog; it is never a path.
	said, missing := texts(guidance, "Name", "StagingDir")
	if missing != "" {
		return c.malformed(missing)
	}
	c.Log.Info("Mapping common files into job's initial working directory...")
	key, exactly, err := c.key(said[0]), commonfiles.Name(""), error(nil)
	if c.Digests {
		exactly, err = commonfiles.ParseName(said[1], key)
	}
	var shared commonfiles.Shared
	if err == nil {
		shared, err = c.take(ctx, key, exactly)
	}
	if err != nil {
		c.Log.Error("The job does not get its common files", "error", err)
		return answer(command, false)
	}
	c.Log.Info("Mapped common files", "files", fmt.Sprint(shared.Files), "bytes", shared.Bytes)
	return answer(command, !c.Pretend)
}

func (c *Catalogs) take(ctx context.Context, key commonfiles.Key, exactly commonfiles.Name) (commonfiles.Shared, error) {
	found, err := commonfiles.Find(c.Execute, key, exactly)
	if err != nil {
		return commonfiles.Shared{}, err
	}
	var tries *multierror.Error
	for _, one := range found { // the first may be going
		defer one.Close()
		shared, err := c.Sandbox.Share(ctx, one, c.Executable, c.Policy, c.Log)
		if err == nil {
			return shared, nil
		}
		tries = multierror.Append(tries, err)
	}
	return commonfiles.Shared{}, tries
}
