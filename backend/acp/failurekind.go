package acp

import (
	"regexp"
	"strings"
)

// FailureKind is what an error of an agent means to a person: which way on fits.
type FailureKind string

// The kinds of failures. ACP has a code for a missing login alone; other kinds are told by the words of the agents and their providers.
const (
	FailureAuth      FailureKind = "auth"       // a login or a key is missing, wrong or has expired
	FailureRateLimit FailureKind = "rate_limit" // the provider takes no more requests for now
	FailureNetwork   FailureKind = "network"    // the provider cannot be reached
	FailureRefused   FailureKind = "refused"    // the provider does not take this request, now or later
	FailureAgent     FailureKind = "agent"      // everything else
)

// failureWords has, in the order in which they are tried, the words of each kind, in lower case. A limit is tried before a login, because
// messages about limits name accounts; the network comes last, because "timeout" stands in many texts.
//
//nolint:gochecknoglobals // a constant in all but name
var failureWords = []struct {
	kind  FailureKind
	words *regexp.Regexp
}{
	{FailureRateLimit, regexp.MustCompile(`rate.?limit|too many requests|(?:usage|session|weekly|hourly|daily|5-hour|token) limit|limit (?:reached|exceeded)|` +
		`(?:hit|reached|exceeded) your (?:\S+ )?limit|quota|resource.?exhausted|overloaded|insufficient (?:credits?|balance|funds)|credit balance|` +
		`(?:status|http|error|code)\D{0,12}(?:429|529)\b|\b(?:429|529) [a-z{]`)},
	{FailureAuth, regexp.MustCompile(`unauthori[sz]ed|not (?:logged|signed) in|(?:log|sign) in (?:again|first|to)|please (?:log|sign) in|/login\b|` +
		`(?:invalid|incorrect|missing|expired|no) (?:x-)?api.?key|api.?key (?:is|not|was|has)|(?:token|session|credentials?) (?:has |have |is |are )?(?:expired|invalid|revoked)|` +
		`authentication|(?:status|http|error|code)\D{0,12}401\b|\b401 [a-z{]`)},
	{FailureRefused, regexp.MustCompile(`invalid_request|content.?(?:policy|filter)|safety|(?:prompt|input|context|message) (?:is |are )?too (?:long|large|many)|` +
		`(?:context|maximum).{0,20}(?:length|window)|model.{0,40}(?:not found|does not exist|not supported|not available)|permission.?denied|forbidden`)},
	{FailureNetwork, regexp.MustCompile(`econn(?:refused|reset|aborted)|enotfound|etimedout|eai_again|enetunreach|ehostunreach|epipe|getaddrinfo|` +
		`fetch failed|socket hang up|network|connection (?:error|refused|reset|closed|failed|timed out)|no such host|dial tcp|dns|` +
		`certificate|tls|proxy|timed? ?out|unreachable|(?:status|http|error|code)\D{0,12}(?:502|503|504)\b|bad gateway|service unavailable`)},
}

// Kind returns what the error means to a person.
func (e *Error) Kind() FailureKind {
	if e.Code == CodeAuthRequired {
		return FailureAuth
	}
	text := strings.ToLower(e.Sentence())
	for _, of := range failureWords {
		if of.words.MatchString(text) {
			return of.kind
		}
	}
	return FailureAgent
}
