#include "tests/policies/policy_table.h"

#include <netinet/in.h>

#include <sstream>

#include "lib/base/file.h"

namespace keelson::policies {
namespace {

Error Bad(int line, const std::string& what) {
  return Error(Code::kInvalid, "policies.txt:" + std::to_string(line) + ": " + what);
}

bool Matches(const std::string& pattern, const std::string& place) {
  if (pattern == "*") return place.find('/') != std::string::npos;
  if (pattern.ends_with("/*")) return place.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == place;
}

class Reader {
 public:
  Result<> Line(const std::string& line, int number) {
    number_ = number;
    if (line.empty() || line.starts_with("#")) return {};
    std::istringstream in(line);
    std::string word;
    if (line.starts_with(" ")) return More(line);
    in >> word >> std::ws;
    if (word == "test") {
      out_.push_back({.line = number});
      std::getline(in, out_.back().name);
      return {};
    }
    if (out_.empty()) return Bad(number, "no test yet");
    if (word == "pods") {
      while (in >> word) out_.back().places.push_back(word);
      return {};
    }
    if (word == "shut" || word == "open") return Expect(word == "open", in);
    out_.back().steps.push_back({.line = number});
    return Begin(word, in, out_.back().steps.back());
  }
  std::vector<PolicyCase> Take() { return std::move(out_); }

 private:
  Step* Last() { return out_.empty() || out_.back().steps.empty() ? nullptr : &out_.back().steps.back(); }

  Result<> More(const std::string& line) {
    if (!Last() || Last()->kind != Step::kPolicy) return Bad(number_, "it continues no policy");
    Last()->spec += line;
    return {};
  }

  Result<> Expect(bool open, std::istringstream& in) {
    Expectation expectation{.open = open};
    if (!(in >> expectation.from >> expectation.to)) return Bad(number_, "FROM TO expected");
    if (!Last() || Last()->kind != Step::kProbe) return Bad(number_, "there is no probe yet");
    Last()->expected.push_back(std::move(expectation));
    return {};
  }

  Result<> Begin(const std::string& word, std::istringstream& in, Step& step) {
    if (!(in >> step.name)) return Bad(number_, "what?");
    if (word == "policy") {
      step.kind = Step::kPolicy;
      std::getline(in, step.spec);
      return {};
    }
    if (word == "delete") {
      step.kind = Step::kDelete;
      return {};
    }
    if (word == "label-namespace" || word == "label-pod") {
      step.kind = word == "label-pod" ? Step::kLabelPod : Step::kLabelNamespace;
      for (std::string label; in >> label;) {
        const size_t equals = label.find('=');
        if (equals == std::string::npos) return Bad(number_, "KEY=VALUE expected");
        step.labels[label.substr(0, equals)] = label.substr(equals + 1);
      }
      return {};
    }
    if (word != "probe") return Bad(number_, "unknown word " + word);
    step.protocol = step.name == "udp" ? IPPROTO_UDP : step.name == "sctp" ? IPPROTO_SCTP : IPPROTO_TCP;
    return in >> step.port ? Result<>() : Bad(number_, "PROTOCOL PORT expected");
  }

  int number_ = 0;
  std::vector<PolicyCase> out_;
};

}  // namespace

Result<std::vector<PolicyCase>> ReadPolicyTable(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::istringstream in(text);
  Reader reader;
  int number = 0;
  for (std::string line; std::getline(in, line);) KEELSON_RETURN_IF_ERROR(reader.Line(line, ++number));
  return reader.Take();
}

bool IsOpen(const Step& step, const std::string& from, const std::string& to) {
  bool open = true;
  for (const Expectation& expectation : step.expected) {
    if (Matches(expectation.from, from) && Matches(expectation.to, to)) open = expectation.open;
  }
  return open || from == to;
}

}  // namespace keelson::policies
