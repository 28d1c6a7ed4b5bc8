// One extender: who it is asked about, and how. Its messages are the types of
// k8s.io/kube-scheduler/extender/v1 as Go writes them, under the fields' own names; like Go it reads names in
// any case.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "controlplane/scheduler/config/config.h"
#include "controlplane/scheduler/types/pod_info.h"
#include "lib/base/error.h"
#include "lib/http/client/client.h"

namespace keelson::scheduler {

// What extenders are told as whole objects.
struct ExtenderObjects {
  std::function<std::shared_ptr<const corev1::Pod>(const PodInfo&)> pod;      // null: it has gone
  std::function<std::shared_ptr<const corev1::Node>(std::string_view)> node;  // null: it has gone
};

// A field of an answer, null where it is absent, null or what has it is no object.
const boost::json::value* Field(const boost::json::value& value, std::string_view name);
std::string TextField(const boost::json::value& value, std::string_view name);  // "" when absent

class ExtenderClient {
 public:
  // kInvalid: a URL or a certificate.
  static Result<std::unique_ptr<ExtenderClient>> Create(const ExtenderConfig& config, ExtenderObjects objects,
                                                        std::stop_token stop);

  const ExtenderConfig& config() const { return config_; }
  // Whether the pod asks for resources that it manages, or it manages all pods.
  bool Interested(const PodInfo& pod) const;

  // kUnavailable: it does not answer, or what it says is no answer, or an error.
  Result<boost::json::value> Call(const std::string& verb, const boost::json::value& body) const;
  // kNotFound: the pod has gone.
  Result<boost::json::value> PodObject(const PodInfo& pod) const;
  // ExtenderArgs.
  Result<boost::json::value> NodeArguments(const PodInfo& pod,
                                           const std::vector<std::string_view>& nodes) const;

 private:
  ExtenderClient(const ExtenderConfig& config, ExtenderObjects objects, std::stop_token stop)
      : config_(config), objects_(std::move(objects)), stop_(std::move(stop)) {}

  const ExtenderConfig config_;
  const ExtenderObjects objects_;
  const std::stop_token stop_;
  std::string path_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace keelson::scheduler
