#include "controlplane/scheduler/algorithm/debug_endpoint.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace keelson::scheduler {

namespace json = boost::json;

json::value ToJson(const Algorithm::Diagnosis& diagnosis) {
  json::object out;
  if (!diagnosis.pre_filter.status.ok()) {
    out["refused"] = {{"plugin", diagnosis.pre_filter.plugin},
                      {"message", diagnosis.pre_filter.status.message}};
    return out;
  }
  json::array nodes;
  for (const Algorithm::Diagnosis::Node& node : diagnosis.nodes) {
    json::object one{{"name", node.name}};
    if (node.plugin.empty()) {
      json::object scores;
      for (const auto& [plugin, score] : node.scores) scores[plugin] = score;
      one["total"] = node.total_score;
      one["scores"] = std::move(scores);
    } else {
      one["refusedBy"] = node.plugin;
      one["reasons"] = json::array(node.reasons.begin(), node.reasons.end());
      if (!node.details.empty()) one["numbers"] = node.details;
    }
    nodes.push_back(std::move(one));
  }
  out["nodes"] = std::move(nodes);
  return out;
}

http::Handler DebugHandler(std::function<Result<json::value>(const std::string& pod)> diagnose) {
  return [diagnose = std::move(diagnose)](std::shared_ptr<const http::ServerRequest> request,
                                          std::shared_ptr<http::ResponseWriter> writer) {
    const auto text = [&](int status, std::string body) {
      writer->Reply(status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body));
    };
    if (request->path != "/debug/why") return text(404, "404 page not found\n");
    if (request->method != "GET") return text(405, "method not allowed\n");
    const Result<json::value> found = diagnose(std::string(request->query.Get("pod")));
    if (!found) return text(HttpStatus(found.error().code()), found.error().message() + "\n");
    writer->Reply(200, {{"Content-Type", "application/json"}}, json::serialize(*found));
  };
}

}  // namespace keelson::scheduler
