#include "ctl/trace/report.h"

#include <algorithm>
#include <boost/json.hpp>

#include "ctl/output.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

// What the API says about a backend; nullptr: nothing.
const Endpoint* Known(const TracedPath& traced, const Backend& backend) {
  for (const Endpoint& endpoint : traced.endpoints) {
    if (endpoint.ip == backend.ip && endpoint.port == backend.port) return &endpoint;
  }
  return nullptr;
}

json::array StepsDocument(const std::vector<nft::TraceStep>& steps) {
  json::array out;
  for (const nft::TraceStep& step : steps) out.push_back({{"where", step.chain}, {"what", step.what}});
  return out;
}

json::object BackendDocument(const TracedPath& traced, const Backend& backend) {
  json::object out = {{"address", backend.ip.ToString()}, {"port", backend.port}};
  if (const Endpoint* known = Known(traced, backend)) {
    if (!known->pod.empty()) out["pod"] = known->pod;
    if (!known->node.empty()) out["node"] = known->node;
    out["ready"] = known->ready;
  }
  out["masqueraded"] = backend.masqueraded;
  out["via"] = backend.via;
  if (!backend.steps.empty()) out["steps"] = StepsDocument(backend.steps);
  return out;
}

json::array ProblemsDocument(const std::vector<Problem>& problems) {
  json::array out;
  for (const Problem& p : problems) out.push_back({{"reason", p.reason}, {"message", p.message}});
  return out;
}

const char* CallName(SocketCall call) { return call == SocketCall::kConnect ? "connect" : "sendmsg"; }

json::object PathDocument(const TracedPath& traced) {
  const Path& path = traced.path;
  json::object frontend = {{"type", KindName(path.frontend.kind)},
                           {"address", path.frontend.ip.ToString()},
                           {"port", path.frontend.port},
                           {"protocol", traced.protocol}};
  if (!traced.port_name.empty()) frontend["portName"] = traced.port_name;
  if (path.call) frontend["call"] = CallName(*path.call);
  json::array backends, unknown;
  for (const Backend& backend : path.backends) backends.push_back(BackendDocument(traced, backend));
  for (const std::string& what : path.not_understood) unknown.push_back(json::string(what));
  return {{"frontend", std::move(frontend)},
          {"verdict", VerdictName(path.verdict)},
          {"steps", StepsDocument(path.steps)},
          {"backends", std::move(backends)},
          {"connections", traced.connections},
          {"rulesNotUnderstood", std::move(unknown)},
          {"problems", ProblemsDocument(traced.problems)}};
}

std::string PathTable(const TracedPath& traced) {
  const Path& path = traced.path;
  std::string out = std::string(KindName(path.frontend.kind)) + " " +
                    AddressText(path.frontend.ip, path.frontend.port) + "/" + traced.protocol +
                    (traced.port_name.empty() ? "" : " (" + traced.port_name + ")") +
                    (path.call ? std::string(" by ") + CallName(*path.call) + "()" : "") + ": " +
                    std::string(VerdictName(path.verdict)) + "\n";
  if (!path.steps.empty()) {
    std::vector<std::vector<std::string>> rows = {{"STEP", "WHERE", "WHAT"}};
    for (const nft::TraceStep& step : path.steps) {
      rows.push_back({std::to_string(rows.size()), step.chain, step.what});
    }
    out += TextTable(rows, 2);
  }
  if (!path.backends.empty()) {
    std::vector<std::vector<std::string>> rows = {{"BACKEND", "POD", "NODE", "READY", "MASQUERADED", "VIA"}};
    for (const Backend& backend : path.backends) {
      const Endpoint* known = Known(traced, backend);
      auto text = [&](const std::string& value) {
        return known && !value.empty() ? value : std::string("-");
      };
      rows.push_back({AddressText(backend.ip, backend.port), text(known ? known->pod : ""),
                      text(known ? known->node : ""),
                      !known         ? "-"
                      : known->ready ? "true"
                                     : "false",
                      backend.masqueraded ? "true" : "false", backend.via});
    }
    out += TextTable(rows, 2);
  }
  if (traced.connections > 0) out += "  " + std::to_string(traced.connections) + " connection(s) under way\n";
  for (const std::string& what : path.not_understood) {
    out += "  rule not understood, taken as not matching: " + what + "\n";
  }
  for (const Problem& problem : traced.problems) {
    out += "  PROBLEM " + problem.reason + ": " + problem.message + "\n";
  }
  return out;
}

}  // namespace

bool TraceReport::HasProblems() const {
  return !problems.empty() || std::any_of(paths.begin(), paths.end(),
                                          [](const TracedPath& path) { return !path.problems.empty(); });
}

json::value ToDocument(const TraceReport& report) {
  json::array notes, traced;
  for (const std::string& note : report.notes) notes.push_back(json::string(note));
  for (const TracedPath& path : report.paths) traced.push_back(PathDocument(path));
  return json::object{{"service", report.service}, {"type", report.type},
                      {"source", report.source},   {"node", report.node},
                      {"notes", std::move(notes)}, {"problems", ProblemsDocument(report.problems)},
                      {"paths", std::move(traced)}};
}

std::string ToTable(const TraceReport& report) {
  std::string out = report.type + " Service " + report.service + ", from " + report.source + ", on node " +
                    report.node + "\n";
  for (const std::string& note : report.notes) out += note + "\n";
  for (const Problem& problem : report.problems) {
    out += "PROBLEM " + problem.reason + ": " + problem.message + "\n";
  }
  for (const TracedPath& path : report.paths) out += "\n" + PathTable(path);
  return out;
}

}  // namespace keelson::ctl
