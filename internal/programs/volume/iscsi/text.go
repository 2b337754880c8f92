package iscsi

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxText is the most text of a request that goes over several PDUs.
const maxText = 16 << 10

// pair is a key and its value.
type pair struct{ key, value string }

type pairs []pair

// parseText reads key=value pairs, each with a zero byte at its end.
func parseText(text []byte) (pairs, error) {
	var all pairs
	for field := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
		if field == "" {
			continue
		}
		key, value, ok := strings.Cut(field, "=")
		if !ok || key == "" || len(key) > 63 {
			return nil, fmt.Errorf("the text has %.80q, which is no key=value", field)
		}
		if _, twice := all.find(key); twice {
			return nil, fmt.Errorf("the text has the key %q twice", key)
		}
		if all = append(all, pair{key, value}); len(all) > 100 {
			return nil, errors.New("the text has more than 100 keys")
		}
	}
	return all, nil
}

func (all pairs) find(key string) (string, bool) {
	for _, p := range all {
		if p.key == key {
			return p.value, true
		}
	}
	return "", false
}

func (all pairs) get(key string) string {
	value, _ := all.find(key)
	return value
}

func (all pairs) text() []byte {
	var b []byte
	for _, p := range all {
		b = append(append(append(append(b, p.key...), '='), p.value...), 0)
	}
	return b
}

func offers(list, value string) bool { return slices.Contains(strings.Split(list, ","), value) }

// parseBinary reads a binary value (RFC 7143, section 6.1).
func parseBinary(value string) ([]byte, error) {
	if len(value) < 2 || value[0] != '0' {
		return nil, errors.New("a binary value begins with neither 0x nor 0b")
	}
	switch digits := value[2:]; value[1] {
	case 'x', 'X':
		return hex.DecodeString(digits)
	case 'b', 'B':
		return base64.StdEncoding.DecodeString(digits)
	}
	return nil, errors.New("a binary value begins with neither 0x nor 0b")
}

// limits are what a session has negotiated, with the defaults of RFC 7143 (section 13).
type limits struct {
	// send is the most data of a PDU that the initiator takes.
	send int
	// burst is the most data of an answered R2T, and of a sequence of Data-In PDUs.
	burst int
	// immediate is whether a command may have data with it.
	immediate bool
}

func defaultLimits() limits { return limits{send: loginSegment, burst: 256 << 10, immediate: true} }

const (
	reject        = "Reject"
	notUnderstood = "NotUnderstood"
	yes           = "Yes"
	no            = "No"
)

// numbers are the numeric keys: what they may be, and what the target has at most.
var numbers = map[string]struct{ least, most, ours int }{
	"MaxRecvDataSegmentLength": {512, 1<<24 - 1, segmentSize},
	"MaxBurstLength":           {512, 1<<24 - 1, 1 << 20},
	"FirstBurstLength":         {512, 1<<24 - 1, segmentSize},
	"MaxConnections":           {1, 65535, 1},
	"MaxOutstandingR2T":        {1, 65535, 1},
	"DefaultTime2Wait":         {0, 3600, 3600},
	"DefaultTime2Retain":       {0, 3600, 0},
	"ErrorRecoveryLevel":       {0, 2, 0},
}

// negotiate has the answer to an operational key; none to what is only declared.
func (l *limits) negotiate(key, value string) string {
	switch key {
	case "HeaderDigest", "DataDigest":
		if offers(value, "None") {
			return "None"
		}
		return reject
	case "InitialR2T", "DataPDUInOrder", "DataSequenceInOrder", "ImmediateData", "IFMarker", "OFMarker":
		if value != yes && value != no {
			return reject
		}
	}
	switch key {
	case "InitialR2T", "DataPDUInOrder", "DataSequenceInOrder":
		return yes
	case "IFMarker", "OFMarker":
		return no
	case "ImmediateData":
		l.immediate = value == yes
		return value
	}
	is, known := numbers[key]
	if !known {
		return notUnderstood
	}
	n, err := strconv.ParseInt(value, 0, 32)
	if err != nil || int(n) < is.least || int(n) > is.most {
		return reject
	}
	agreed := min(int(n), is.ours)
	switch key {
	case "MaxRecvDataSegmentLength":
		l.send = agreed &^ 3
		return ""
	case "MaxBurstLength":
		l.burst = agreed
	}
	return strconv.Itoa(agreed)
}
