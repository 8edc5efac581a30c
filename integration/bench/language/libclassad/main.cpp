// Measures HTCondor's own ClassAd library with the same work as ours (ours.go).
//
//   libclassad MACHINES JOBS ROUNDS
//
// Both files are written by the tools' option -long. Prints a line for each round and
// kind of work: the kind, how many were done, nanoseconds for all of it, and a
// number that must be the same for both libraries.

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <glob.h>

#include "classad/classad_distribution.h"

using Attribute = std::pair<std::string, std::string>;
using Text = std::vector<Attribute>;
using Ads = std::vector<std::unique_ptr<classad::ClassAd>>;

static std::vector<Text> read(const char *path) {
	std::ifstream in(path);
	std::vector<Text> all;
	Text one;
	std::string line;
	while (std::getline(in, line)) {
		size_t equals = line.find(" = ");
		if (equals != std::string::npos) {
			one.emplace_back(line.substr(0, equals), line.substr(equals + 3));
		} else if (!one.empty()) {
			all.push_back(std::move(one));
			one.clear();
		}
	}
	if (!one.empty()) all.push_back(std::move(one));
	return all;
}

// A daemon reads ads in this way: each value may come from a cache that all ads share.
static Ads parse(const std::vector<Text> &texts, bool cached) {
	Ads ads;
	ads.reserve(texts.size());
	classad::ClassAdParser parser;
	parser.SetOldClassAd(true);
	for (const Text &text : texts) {
		auto ad = std::make_unique<classad::ClassAd>();
		for (const Attribute &a : text) {
			bool done;
			if (cached) {
				done = ad->InsertViaCache(a.first, a.second);
			} else {
				classad::ExprTree *tree = parser.ParseExpression(a.second, true);
				done = tree && ad->Insert(a.first, tree);
			}
			if (!done) {
				std::cerr << "cannot parse " << a.first << " = " << a.second << std::endl;
				exit(1);
			}
		}
		ads.push_back(std::move(ad));
	}
	return ads;
}

static size_t print(const Ads &ads) {
	classad::ClassAdUnParser unparser;
	unparser.SetOldClassAd(true, true);
	size_t bytes = 0;
	std::string text;
	for (const auto &ad : ads) {
		text.clear();
		for (const auto &attribute : *ad) {
			text += attribute.first;
			text += " = ";
			unparser.Unparse(text, attribute.second);
			text += '\n';
		}
		bytes += text.size();
	}
	return bytes;
}

static size_t match(const Ads &machines, const Ads &jobs) {
	size_t count = 0;
	classad::MatchClassAd both;
	for (const auto &job : jobs) {
		both.ReplaceLeftAd(job.get());
		for (const auto &machine : machines) {
			both.ReplaceRightAd(machine.get());
			count += both.symmetricMatch();
			both.RemoveRightAd();
		}
		both.RemoveLeftAd();
	}
	return count;
}

template <typename Work> static void timed(const char *kind, size_t number, Work work) {
	auto began = std::chrono::steady_clock::now();
	size_t agreed = work();
	auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began);
	std::cout << kind << ' ' << number << ' ' << took.count() << ' ' << agreed << std::endl;
}

static size_t attributes(const Ads &ads) {
	size_t n = 0;
	for (const auto &ad : ads) n += ad->size();
	return n;
}

// A daemon's functions, split() for one, are in HTCondor's other library, which has no
// headers for others.
static void registerFunctions() {
	glob_t found;
	if (glob("/usr/lib/libcondor_utils_*.so", 0, nullptr, &found) != 0) {
		std::cerr << "no libcondor_utils" << std::endl;
		exit(1);
	}
	void *library = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
	void *reconfig = library ? dlsym(library, "_Z15ClassAdReconfigv") : nullptr;
	if (!reconfig) {
		std::cerr << "libcondor_utils: " << dlerror() << std::endl;
		exit(1);
	}
	reinterpret_cast<void (*)()>(reconfig)();
	globfree(&found);
}

int main(int argc, char **argv) {
	if (argc != 4) {
		std::cerr << "usage: libclassad MACHINES JOBS ROUNDS" << std::endl;
		return 2;
	}
	registerFunctions();
	// As in HTCondor: values that are undefined in one ad are not looked up in the other's parent.
	classad::SetOldClassAdSemantics(true);
	std::vector<Text> machineTexts = read(argv[1]), jobTexts = read(argv[2]);
	for (int round = 0; round < atoi(argv[3]); round++) {
		Ads machines, jobs;
		classad::ClassAdSetExpressionCaching(false);
		timed("parse", machineTexts.size(), [&] { machines = parse(machineTexts, false); return attributes(machines); });
		machines.clear();
		classad::ClassAdSetExpressionCaching(true, 0);
		timed("parse-cached", machineTexts.size(), [&] { machines = parse(machineTexts, true); return attributes(machines); });
		machines.clear();
		classad::ClassAdSetExpressionCaching(false);
		machines = parse(machineTexts, false);
		jobs = parse(jobTexts, false);
		timed("print", machines.size(), [&] { return print(machines); });
		timed("match", machines.size() * jobs.size(), [&] { return match(machines, jobs); });
	}
}
