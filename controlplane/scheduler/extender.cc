#include "controlplane/scheduler/extender.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec.h"
#include "lib/base/log.h"
#include "lib/http/client.h"

namespace keelson::scheduler {

namespace json = boost::json;

namespace {

std::string TextOf(const json::object& object, const char* field) {
  const json::value* value = object.if_contains(field);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

const json::value* Find(const json::value& value, const char* field) {
  const json::value* found = value.is_object() ? value.get_object().if_contains(field) : nullptr;
  return found && !found->is_null() ? found : nullptr;
}

json::value Object(const google::protobuf::Message& message) {
  return json::parse(api::EncodeJson(message, api::GvkOf(message.GetDescriptor())));
}

bool AsksFor(const corev1::PodSpec& spec, const std::vector<std::string>& resources) {
  const auto asks = [&](const auto& containers) {
    for (const corev1::Container& container : containers) {
      for (const std::string& name : resources) {
        if (container.resources().requests().contains(name) || container.resources().limits().contains(name))
          return true;
      }
    }
    return false;
  };
  return asks(spec.containers()) || asks(spec.init_containers());
}

}  // namespace

class HttpExtenders::One {
 public:
  One(ExtenderConfig config, std::string path, std::unique_ptr<http::Client> client, ExtenderObjects objects,
      std::stop_token stop)
      : config_(std::move(config)),
        path_(std::move(path)),
        client_(std::move(client)),
        objects_(std::move(objects)),
        stop_(std::move(stop)) {}

  const ExtenderConfig& config() const { return config_; }

  bool Interested(const PodInfo& pod) const {
    if (config_.managed_resources.empty()) return true;
    const std::shared_ptr<const corev1::Pod> object = objects_.pod(pod);
    return object && AsksFor(object->spec(), config_.managed_resources);
  }

  Result<json::value> Call(const std::string& verb, const json::value& body) const {
    http::ClientRequest request;
    request.method = "POST";
    request.target = path_ + "/" + verb;
    request.headers.Add("Content-Type", "application/json");
    request.body = json::serialize(body);
    ASSIGN_OR_RETURN(const http::ClientResponse response, client_->Do(request, config_.timeout, stop_));
    if (response.status != 200) {
      return Error(Code::kUnavailable, fmt::format("failed {} with extender at URL {}/{}, code {}", verb,
                                                   config_.url_prefix, verb, response.status));
    }
    boost::system::error_code malformed;
    json::value answer = json::parse(response.body, malformed);
    if (malformed)
      return Error(Code::kUnavailable,
                   fmt::format("extender {}: {}", config_.url_prefix, malformed.message()));
    return answer;
  }

  // ExtenderArgs. Wire names are Go's field names in lower case.
  Result<json::value> Arguments(const PodInfo& pod, const Snapshot& snapshot,
                                const std::vector<uint32_t>& slots) const {
    const std::shared_ptr<const corev1::Pod> object = objects_.pod(pod);
    if (!object) return Error(Code::kNotFound, fmt::format("pods \"{}\" not found", pod.name));
    json::object args;
    args["pod"] = Object(*object);
    if (config_.node_cache_capable) {
      json::array names;
      for (uint32_t slot : slots) names.emplace_back(snapshot.nodes[slot].facts->name);
      args["nodenames"] = std::move(names);
      return args;
    }
    json::array items;
    for (uint32_t slot : slots) {
      if (const auto node = objects_.node(snapshot.nodes[slot].facts->name)) items.push_back(Object(*node));
    }
    args["nodes"] = json::object{{"apiVersion", "v1"},
                                 {"kind", "NodeList"},
                                 {"metadata", json::object()},
                                 {"items", std::move(items)}};
    return args;
  }

 private:
  const ExtenderConfig config_;
  const std::string path_;
  const std::unique_ptr<http::Client> client_;
  const ExtenderObjects objects_;
  const std::stop_token stop_;
};

HttpExtenders::HttpExtenders() = default;
HttpExtenders::~HttpExtenders() = default;

Result<std::unique_ptr<HttpExtenders>> HttpExtenders::Create(const std::vector<ExtenderConfig>& configs,
                                                             ExtenderObjects objects, std::stop_token stop) {
  std::unique_ptr<HttpExtenders> out(new HttpExtenders());
  for (const ExtenderConfig& config : configs) {
    const size_t host = config.url_prefix.find("://");
    if (host == std::string::npos) {
      return Error(Code::kInvalid,
                   fmt::format("extender urlPrefix \"{}\": must be a URL", config.url_prefix));
    }
    const size_t slash = std::min(config.url_prefix.find('/', host + 3), config.url_prefix.size());
    std::string path = config.url_prefix.substr(slash);
    while (path.ends_with('/')) path.pop_back();
    http::ClientOptions options;
    options.base_url = config.url_prefix.substr(0, slash);
    options.tls.ca_pem = config.ca_pem;
    options.tls.certificate_pem = config.certificate_pem;
    options.tls.key_pem = config.key_pem;
    options.tls.server_name = config.server_name;
    options.tls.insecure_skip_verify = config.insecure;
    ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, http::Client::Create(std::move(options)));
    out->all_.push_back(std::make_unique<One>(config, std::move(path), std::move(client), objects, stop));
  }
  return out;
}

bool HttpExtenders::Interested(const PodInfo& pod) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) {
    return (!one->config().filter_verb.empty() || !one->config().prioritize_verb.empty()) &&
           one->Interested(pod);
  });
}

Result<> HttpExtenders::Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                               std::vector<Refusal>& refused) {
  for (const auto& one : all_) {
    if (one->config().filter_verb.empty() || !one->Interested(pod) || slots.empty()) continue;
    Result<json::value> answer = one->Arguments(pod, snapshot, slots);
    if (answer) answer = one->Call(one->config().filter_verb, *answer);
    if (answer) {
      if (const std::string problem =
              answer->is_object() ? TextOf(answer->get_object(), "error") : "not an object";
          !problem.empty()) {
        answer = Error(Code::kUnavailable, problem);
      }
    }
    if (!answer) {
      if (!one->config().ignorable) return answer.error();
      log::Warn("Extender is left out", {{"extender", one->config().url_prefix}, {"error", answer.error()}});
      continue;
    }
    std::map<std::string, std::pair<std::string, bool>> failed;
    for (const auto& [field, resolvable] :
         {std::pair{"failedNodes", true}, {"failedAndUnresolvableNodes", false}}) {
      const json::value* nodes = Find(*answer, field);
      if (!nodes || !nodes->is_object()) continue;
      for (const auto& [name, reason] : nodes->get_object()) {
        failed[std::string(name)] = {reason.is_string() ? std::string(reason.get_string()) : "", resolvable};
      }
    }
    std::map<std::string, bool> kept;
    if (const json::value* names = Find(*answer, "nodenames"); names && names->is_array()) {
      for (const json::value& name : names->get_array()) {
        if (name.is_string()) kept[std::string(name.get_string())] = true;
      }
    } else if (const json::value* nodes = Find(*answer, "nodes")) {
      const json::value* items = Find(*nodes, "items");
      for (size_t i = 0; items && items->is_array() && i < items->get_array().size(); ++i) {
        const json::value* meta = Find(items->get_array()[i], "metadata");
        if (meta && meta->is_object()) kept[TextOf(meta->get_object(), "name")] = true;
      }
    }
    std::erase_if(slots, [&](uint32_t slot) {
      const std::string& name = snapshot.nodes[slot].facts->name;
      if (kept.contains(name)) return false;
      const auto it = failed.find(name);
      const bool told = it != failed.end() && !it->second.first.empty();
      refused.push_back({slot, told ? it->second.first : "node(s) were refused by an extender",
                         it == failed.end() || it->second.second});
      return true;
    });
  }
  return {};
}

void HttpExtenders::Prioritize(const PodInfo& pod, const Snapshot& snapshot,
                               const std::vector<uint32_t>& slots, std::vector<int64_t>& totals) {
  constexpr int64_t kMaxOfExtenders = 10;
  for (const auto& one : all_) {
    if (one->config().prioritize_verb.empty() || !one->Interested(pod)) continue;
    Result<json::value> answer = one->Arguments(pod, snapshot, slots);
    if (answer) answer = one->Call(one->config().prioritize_verb, *answer);
    if (!answer) {
      // Its opinion is missing; the pod is placed by all others.
      log::Warn("Extender gives no scores",
                {{"extender", one->config().url_prefix}, {"error", answer.error()}});
      continue;
    }
    if (!answer->is_array()) continue;
    std::map<std::string, int64_t> scores;
    for (const json::value& item : answer->get_array()) {
      if (!item.is_object()) continue;
      const json::value* score = Find(item, "score");
      boost::system::error_code malformed;
      const int64_t number = score ? score->to_number<int64_t>(malformed) : 0;
      if (!malformed) scores[TextOf(item.get_object(), "host")] = number;
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto it = scores.find(snapshot.nodes[slots[i]].facts->name);
      if (it != scores.end())
        totals[i] += it->second * one->config().weight * (ScorePlugin::kMax / kMaxOfExtenders);
    }
  }
}

Result<bool> HttpExtenders::Bind(const PodInfo& pod, const std::string& node) const {
  for (const auto& one : all_) {
    if (one->config().bind_verb.empty() || !one->Interested(pod)) continue;
    const json::object args{
        {"podName", pod.name}, {"podNamespace", pod.ns}, {"podUID", pod.uid}, {"node", node}};
    ASSIGN_OR_RETURN(const json::value answer, one->Call(one->config().bind_verb, args));
    const std::string problem = answer.is_object() ? TextOf(answer.get_object(), "error") : "";
    if (!problem.empty()) return Error(Code::kUnavailable, problem);
    return true;
  }
  return false;
}

namespace {

class ExtenderBinder : public BindPlugin {
 public:
  explicit ExtenderBinder(const HttpExtenders& extenders) : extenders_(extenders) {}
  std::string_view name() const override { return "Extender"; }
  Result<bool> Bind(CycleState&, const PodInfo& pod, const std::string& node) override {
    return extenders_.Bind(pod, node);
  }

 private:
  const HttpExtenders& extenders_;
};

}  // namespace

std::unique_ptr<Plugin> NewExtenderBinder(const HttpExtenders& extenders) {
  return std::make_unique<ExtenderBinder>(extenders);
}

}  // namespace keelson::scheduler
