// Package usermap reads map files of HTCondor, for the ClassAd function userMap (HTCondor
// src/condor_utils/MapFile.cpp, classad_usermap.cpp).
//
// A line has three fields: a method, a name, and what the name becomes, which is usually a
// list of groups:
//
//	# method  name                groups
//	*         alice               physics,chemistry
//	*         "bob the builder"   builders
//	*         /^(.+)@site\.org$/i \1,visitors
//	@include more.map
//
// The method is * unless the function is called with one, as in userMap("MAP.method", name).
// A name is a word, a text in double quotes, or a regular expression between slashes; the
// option i ignores case, U makes repeats lazy. \0 to \9 in the third field are what the
// expression and its groups matched. The first line that matches counts. In a prefix map,
// names are beginnings, the longest one counts, and a slash begins no expression.
package usermap
