package job

import (
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Services are the names of the OAuth services whose tokens the job needs, each
// once; ok says whether the job speaks of tokens at all
// (condor_starter.V6.1/jic_shadow.cpp:initUserCredentials,
// condor_utils/cred_dir.cpp:PrepareCredDir).
func Services(ad *classads.Ad) (names []string, ok bool) {
	text, err := ad.GetString("OAuthServicesNeeded")
	if err != nil {
		return nil, false
	}
	for _, name := range config.Split(text) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, true
}

// ProxyName is the name in the sandbox of the job's X.509 proxy; "" if the job
// has none (jic_shadow.cpp:updateX509Proxy).
func ProxyName(ad *classads.Ad) string {
	switch name := basename(ad.StringOr("x509userproxy", "")); name {
	case ".", "..":
		return ""
	default:
		return name
	}
}

// ProxyExpiry is until when a delegated X.509 proxy shall be good, the zero time
// for as long as the original
// (condor_utils/file_transfer.cpp:GetDesiredDelegatedJobCredentialExpiration).
func ProxyExpiry(ad *classads.Ad, k Knobs, now time.Time) (time.Time, error) {
	var problems *multierror.Error
	delegate, err := k.Bool("DELEGATE_JOB_GSI_CREDENTIALS", true)
	if err != nil {
		problems = multierror.Append(problems, err)
	}
	if !delegate {
		return time.Time{}, problems.ErrorOrNil()
	}
	lifetime := ad.IntOr("DelegateJobGSICredentialsLifetime", -1)
	if lifetime < 0 {
		const day = 24 * 60 * 60
		if lifetime, err = k.Int("DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME", day); err != nil {
			problems, lifetime = multierror.Append(problems, err), day
		}
	}
	const most = 100 * 365 * 24 * 60 * 60 // what a duration can hold, by far
	if lifetime <= 0 || lifetime > most {
		return time.Time{}, problems.ErrorOrNil()
	}
	return now.Add(time.Duration(lifetime) * time.Second), problems.ErrorOrNil()
}
