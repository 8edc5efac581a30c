package classads_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"podstarter/classads"
)

// The output of condor_status -long is one ad after another, with empty lines
// between them. An ad that cannot be read does not end the loop.
func ExampleReader_All() {
	output := `Name = "slot1@a"
Memory = 4096

Name = "slot1@b"
Memory = 4096 +

Name = "slot1@c"
Memory = 2048
`
	r := classads.NewReader(strings.NewReader(output), classads.FormatLong, classads.Parser{})
	for ad, err := range r.All() {
		if err != nil {
			fmt.Println("skipped:", err)
			continue
		}
		fmt.Println(ad.StringOr("Name", "?"), ad.IntOr("Memory", 0))
	}
	// Output:
	// slot1@a 4096
	// skipped: ClassAd line 2: attribute Memory: expected an operand at the end of the text (byte 6)
	// slot1@c 2048
}

// An ad is a JSON object. What JSON cannot say is an expression in a string,
// which begins with a mark that no other string has.
func ExampleAd_MarshalJSON() {
	job, err := classads.ParseOld("ClusterId = 7\nRank = TARGET.Mips * 2\nArguments = \"a b\"\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := json.NewEncoder(os.Stdout).Encode(job); err != nil {
		fmt.Println(err)
	}
	fmt.Println(job.FormatJSON()) // as condor_q -json
	// Output:
	// {"ClusterId":7,"Rank":"\/Expr(TARGET.Mips * 2)\/","Arguments":"a b"}
	// {
	//   "ClusterId": 7,
	//   "Rank": "\/Expr(TARGET.Mips * 2)\/",
	//   "Arguments": "a b"
	// }
}

func ExampleAd_UnmarshalJSON() {
	var jobs []*classads.Ad
	err := json.Unmarshal([]byte(`[{"ClusterId": 7, "Rank": "\/Expr(TARGET.Mips * 2)\/"}, {"ClusterId": 8}]`), &jobs)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, job := range jobs {
		fmt.Println(job)
	}
	// Output:
	// [ ClusterId = 7; Rank = TARGET.Mips * 2 ]
	// [ ClusterId = 8 ]
}

// Structs and ads can be made of each other.
func ExampleMarshal() {
	type request struct {
		Owner  string
		Memory int `classads:"RequestMemory"`
		Groups []string
		Rank   *classads.Expr
	}
	rank, err := classads.ParseExpr("TARGET.Mips")
	if err != nil {
		fmt.Println(err)
		return
	}
	ad, err := classads.Marshal(request{Owner: "alice", Memory: 2048, Groups: []string{"physics"}, Rank: rank})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(ad.FormatOld())

	ad.SetInt("RequestMemory", 4096)
	var back request
	if err := ad.Unmarshal(&back); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back.Owner, back.Memory, back.Groups, back.Rank)
	// Output:
	// Owner = "alice"
	// RequestMemory = 2048
	// Groups = { "physics" }
	// Rank = TARGET.Mips
	// alice 4096 [physics] TARGET.Mips
}

// Before an ad is shown to people, the secrets of the daemons have to go.
func ExampleAd_Public() {
	slot, err := classads.ParseOld("Name = \"slot1@a\"\nClaimId = \"<127.0.0.1:9618>#1#2#secret\"\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(slot.Public())
	// Output:
	// [ Name = "slot1@a" ]
}
