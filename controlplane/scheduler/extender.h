// Scheduler extenders: processes that are asked over HTTP, after the plugins, which nodes they refuse and
// prefer, and that may bind (k8s.io/kube-scheduler/extender/v1).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/algorithm.h"
#include "controlplane/scheduler/config.h"

namespace keelson::scheduler {

// What extenders are told as whole objects.
struct ExtenderObjects {
  std::function<std::shared_ptr<const corev1::Pod>(const PodInfo&)> pod;      // null: it has gone
  std::function<std::shared_ptr<const corev1::Node>(std::string_view)> node;  // null: it has gone
};

class HttpExtenders : public Extenders {
 public:
  // kInvalid: a URL or a certificate.
  static Result<std::unique_ptr<HttpExtenders>> Create(const std::vector<ExtenderConfig>& configs,
                                                       ExtenderObjects objects, std::stop_token stop);
  ~HttpExtenders() override;

  bool Interested(const PodInfo& pod) const override;
  Result<> Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                  std::vector<Refusal>& refused) override;
  void Prioritize(const PodInfo& pod, const Snapshot& snapshot, const std::vector<uint32_t>& slots,
                  std::vector<int64_t>& totals) override;
  // False: none of them binds this pod. Thread safe.
  Result<bool> Bind(const PodInfo& pod, const std::string& node) const;

 private:
  class One;
  HttpExtenders();
  std::vector<std::unique_ptr<One>> all_;
};

// The bind plugin in front of all others. `extenders` outlives it.
std::unique_ptr<Plugin> NewExtenderBinder(const HttpExtenders& extenders);

}  // namespace keelson::scheduler
