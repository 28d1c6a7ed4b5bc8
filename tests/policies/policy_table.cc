#include "tests/policies/policy_table.h"

#include <netinet/in.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "lib/base/file.h"

namespace keelson::policies {
namespace {

Error Bad(int line, const std::string& what) {
  return Error(Code::kInvalid, "line " + std::to_string(line) + ": " + what);
}

struct Word {
  const char* word;
  Step::Kind kind;
  cni::agent::ClusterPolicyKind cluster_kind = cni::agent::ClusterPolicyKind::kClusterNetworkPolicy;
};
constexpr Word kWords[] = {
    {"policy", Step::kPolicy},
    {"cluster-policy", Step::kClusterPolicy},
    {"admin-policy", Step::kClusterPolicy, cni::agent::ClusterPolicyKind::kAdminNetworkPolicy},
    {"baseline-policy", Step::kClusterPolicy, cni::agent::ClusterPolicyKind::kBaselineAdminNetworkPolicy},
    {"delete", Step::kDelete},
    {"delete-cluster-policy", Step::kDeleteClusterPolicy},
    {"label-namespace", Step::kLabelNamespace},
    {"label-pod", Step::kLabelPod},
    {"probe", Step::kProbe},
};

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
    const bool policy = Last() && (Last()->kind == Step::kPolicy || Last()->kind == Step::kClusterPolicy);
    if (!policy) return Bad(number_, "it continues no policy");
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
    const Word* known =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& one) { return word == one.word; });
    if (known == std::end(kWords)) return Bad(number_, "unknown word " + word);
    step.kind = known->kind;
    step.cluster_kind = known->cluster_kind;
    if (step.kind == Step::kPolicy || step.kind == Step::kClusterPolicy) {
      std::getline(in, step.spec);
      return {};
    }
    if (step.kind == Step::kLabelNamespace || step.kind == Step::kLabelPod) {
      for (std::string label; in >> label;) {
        const size_t equals = label.find('=');
        if (equals == std::string::npos) return Bad(number_, "KEY=VALUE expected");
        step.labels[label.substr(0, equals)] = label.substr(equals + 1);
      }
      return {};
    }
    if (step.kind != Step::kProbe) return {};
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
    if (from == to && (expectation.from != from || expectation.to != to)) continue;
    if (Matches(expectation.from, from) && Matches(expectation.to, to)) open = expectation.open;
  }
  return open;
}

}  // namespace keelson::policies
