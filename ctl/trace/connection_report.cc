#include "ctl/trace/connection_report.h"

#include <algorithm>
#include <boost/json.hpp>

#include "ctl/output.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

const char* KindName(PolicyDecision::Kind kind) {
  switch (kind) {
    case PolicyDecision::kAllowed:
      return "Allowed";
    case PolicyDecision::kPassedOn:
      return "PassedOn";
    case PolicyDecision::kDeniedBy:
    case PolicyDecision::kDenied:
      return "Denied";
    case PolicyDecision::kNotReady:
      return "NotReady";
  }
  return "";
}

std::string Outcome(const ConnectionPath& way) {
  if (way.opens) return "lets it through";
  switch (way.path.verdict) {
    case Path::kDropped:
      return "drops it";
    case Path::kRejected:
      return "rejects it";
    default:
      return "has no way for it";
  }
}

// What stands for no decision: a direction that this node decides about without any policy.
std::vector<std::string> Unrestricted(const Connection& connection, const ConnectionPath& way) {
  std::vector<std::string> out;
  auto decided = [&](const char* direction) {
    return std::any_of(way.decisions.begin(), way.decisions.end(), [&](const PolicyDecision& decision) {
      return decision.direction == direction || decision.kind == PolicyDecision::kNotReady;
    });
  };
  // A packet that has been dropped on its way out does not get as far as ingress.
  bool left = std::none_of(way.decisions.begin(), way.decisions.end(),
                           [](const PolicyDecision& decision) { return decision.Refuses(); });
  if (connection.source_node == connection.here && !decided("egress")) {
    out.emplace_back("no policy restricts egress of " + connection.source);
  }
  if (connection.destination_node == connection.here && !decided("ingress") && left) {
    out.emplace_back("no policy restricts ingress of " + connection.destination);
  }
  return out;
}

json::object PathDocument(const ConnectionPath& way) {
  json::array steps, decisions, unknown;
  for (const nft::TraceStep& step : way.path.steps) {
    steps.push_back({{"where", step.chain}, {"what", step.what}});
  }
  for (const PolicyDecision& decision : way.decisions) {
    decisions.push_back(
        {{"direction", decision.direction}, {"decision", KindName(decision.kind)}, {"by", decision.by}});
  }
  for (const std::string& what : way.path.not_understood) unknown.push_back(json::string(what));
  return {{"from", way.from.ToString()},
          {"to", way.to.ToString()},
          {"opens", way.opens},
          {"verdict", VerdictName(way.path.verdict)},
          {"policies", std::move(decisions)},
          {"steps", std::move(steps)},
          {"rulesNotUnderstood", std::move(unknown)}};
}

}  // namespace

bool ConnectionReport::HasProblems() const {
  return std::none_of(paths.begin(), paths.end(), [](const ConnectionPath& way) { return way.opens; });
}

ConnectionPath JudgeConnection(const IpAddress& from, Path path) {
  ConnectionPath out{.from = from, .to = path.frontend.ip};
  out.path = std::move(path);
  out.decisions = PolicyDecisionsOf(out.path.steps);
  const Path::Verdict verdict = out.path.verdict;
  // Nothing translates a pod's own address; a pod of the node's network is reached at a socket of this node.
  out.opens = verdict == Path::kNotTranslated || verdict == Path::kLocal || verdict == Path::kDelivered;
  return out;
}

std::vector<std::string> NotesOf(const Connection& connection) {
  std::vector<std::string> out;
  auto other = [&](const char* direction, const std::string& pod, const std::string& node) {
    if (node == connection.here) return;
    out.push_back(std::string(direction) + " of " + pod + " is decided on its node " + node +
                  ": run nodectl there too");
  };
  other("egress", connection.source, connection.source_node);
  if (!connection.IsOutside()) other("ingress", connection.destination, connection.destination_node);
  return out;
}

json::value ToDocument(const ConnectionReport& report) {
  const Connection& c = report.connection;
  json::array paths, notes;
  for (const ConnectionPath& way : report.paths) paths.push_back(PathDocument(way));
  for (const std::string& note : report.notes) notes.push_back(json::string(note));
  return json::object{{"source", c.source},
                      {"sourceNode", c.source_node},
                      {"destination", c.destination},
                      {"destinationNode", c.destination_node},
                      {"node", c.here},
                      {"protocol", c.protocol},
                      {"port", c.port},
                      {"paths", std::move(paths)},
                      {"notes", std::move(notes)}};
}

std::string ToTable(const ConnectionReport& report) {
  const Connection& c = report.connection;
  std::string out = "From pod " + c.source + " to " + (c.IsOutside() ? "" : "pod ") + c.destination +
                    ", port " + std::to_string(c.port) + "/" + c.protocol + ", on node " + c.here + "\n";
  for (const ConnectionPath& way : report.paths) {
    out += "\n" + way.from.ToString() + " to " + AddressText(way.to, c.port) + ": this node " + Outcome(way) +
           "\n";
    for (const PolicyDecision& decision : way.decisions) out += "  " + ToText(decision) + "\n";
    for (const std::string& text : Unrestricted(c, way)) out += "  " + text + "\n";
    std::vector<std::vector<std::string>> rows = {{"STEP", "WHERE", "WHAT"}};
    for (const nft::TraceStep& step : way.path.steps) {
      rows.push_back({std::to_string(rows.size()), step.chain, step.what});
    }
    if (rows.size() > 1) out += TextTable(rows, 2);
    for (const std::string& what : way.path.not_understood) {
      out += "  rule not understood, taken as not matching: " + what + "\n";
    }
  }
  if (report.paths.empty()) {
    out += c.IsOutside() ? "There is no address of the pod's families\n"
                         : "The pods have no addresses of one family\n";
  }
  for (const std::string& note : report.notes) out += "\n" + note + "\n";
  return out;
}

}  // namespace keelson::ctl
