#include "tests/policies/policy_node.h"

#include <cstdlib>
#include <cstring>

#include "cni/agent/node.h"
#include "cni/agent/policy/objects.h"
#include "cni/keelson-policy/attachment.h"
#include "lib/api/codec/codec.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/nft/diff.h"
#include "lib/nft/text.h"

namespace keelson::policies {
namespace {

constexpr char kPod = 'p', kNamespace = 'n', kPolicy = 'y', kNode = 'o';

template <typename T>
T MustParse(Result<T> parsed) {
  if (!parsed) std::abort();
  return std::move(*parsed);
}

}  // namespace

Result<std::unique_ptr<PolicyNode>> PolicyNode::Open(const linux::NetNs& netns, const policy::Node& node) {
  std::unique_ptr<PolicyNode> out(new PolicyNode(netns, node));
  KEELSON_ASSIGN_OR_RETURN(out->kernel_, nft::OpenKernel(netns));
  KEELSON_RETURN_IF_ERROR(out->OpenSyncer({}));
  return out;
}

PolicyNode::~PolicyNode() { Stop(); }

Result<> PolicyNode::OpenSyncer(agent::PolicySyncerOptions options) {
  agent::PolicySources sources{.node = [this]() -> Result<policy::Node> { return node_; },
                               .plan =
                                   [this](const auto& use) {
                                     MutexLock lock(mutex_);
                                     use(plan_);
                                     return true;
                                   },
                               .on_sync = [](const Result<>&) {},
                               .on_event = [](const policy::Pod&, std::string_view, const std::string&) {}};
  return netns_.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(syncer_, agent::PolicySyncer::Open("br0", std::move(sources), options));
    return {};
  });
}

void PolicyNode::Change(const std::function<void(policy::Incremental&)>& change) {
  {
    MutexLock lock(mutex_);
    change(plan_);
  }
  syncer_->Changed();
}

void PolicyNode::PutRaw(char kind, const std::string& raw) {
  if (kind == kPod) {
    auto parsed = MustParse(agent::ParsePod(raw));
    raw_[kind + parsed.key] = raw;
    Change([&](policy::Incremental& plan) { plan.PutPod(parsed.key, std::move(parsed.value)); });
  } else if (kind == kNamespace) {
    auto parsed = MustParse(agent::ParseNamespace(raw));
    raw_[kind + parsed.key] = raw;
    Change([&](policy::Incremental& plan) { plan.PutNamespace(parsed.key, std::move(parsed.value)); });
  } else if (kind == kNode) {
    auto parsed = MustParse(agent::ParseNode(raw));
    raw_[kind + parsed.info.name] = raw;
    nodes_[parsed.info.name] = std::move(parsed.info.as_peer);
    Change([&](policy::Incremental& plan) { plan.SetNodes(nodes_); });
  } else {
    auto parsed = MustParse(agent::ParsePolicy(raw));
    raw_[kind + parsed.key] = raw;
    Change([&](policy::Incremental& plan) { plan.PutPolicy(parsed.key, std::move(parsed.value)); });
  }
}

void PolicyNode::Put(const corev1::Pod& pod) { PutRaw(kPod, api::EncodeRaw(pod)); }
void PolicyNode::Put(const corev1::Node& node) { PutRaw(kNode, api::EncodeRaw(node)); }
void PolicyNode::Put(const corev1::Namespace& ns) { PutRaw(kNamespace, api::EncodeRaw(ns)); }
void PolicyNode::Put(const networkingv1::NetworkPolicy& policy) { PutRaw(kPolicy, api::EncodeRaw(policy)); }
void PolicyNode::Put(const policy::ClusterPolicy& policy) {
  Change([&](policy::Incremental& plan) { plan.PutClusterPolicy(policy.name, policy); });
}
void PolicyNode::EraseClusterPolicy(const std::string& name) {
  Change([&](policy::Incremental& plan) { plan.EraseClusterPolicy(name); });
}
void PolicyNode::ErasePod(const std::string& key) {
  raw_.erase(kPod + key);
  Change([&](policy::Incremental& plan) { plan.ErasePod(key); });
}
void PolicyNode::ErasePolicy(const std::string& key) {
  raw_.erase(kPolicy + key);
  Change([&](policy::Incremental& plan) { plan.ErasePolicy(key); });
}

std::string PolicyNode::Save() {
  std::string out;
  for (const auto& [key, raw] : raw_) {
    const auto size = static_cast<uint32_t>(raw.size());
    out += key[0];
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out += raw;
  }
  return out;
}

Result<> PolicyNode::Load(std::string_view saved) {
  while (!saved.empty()) {
    uint32_t size = 0;
    if (saved.size() < 1 + sizeof size) return Error(Code::kInvalid, "cut off");
    std::memcpy(&size, saved.data() + 1, sizeof size);
    const std::string_view raw = saved.substr(1 + sizeof size, size);
    if (raw.size() != size) return Error(Code::kInvalid, "cut off");
    PutRaw(saved[0], std::string(raw));
    saved.remove_prefix(1 + sizeof size + size);
  }
  return {};
}

Result<bool> PolicyNode::Sync(bool whole) { return syncer_->SyncOnce(whole); }

void PolicyNode::Start(agent::PolicySyncerOptions options) {
  Stop();
  if (!OpenSyncer(options)) std::abort();
  syncer_->Changed();
  thread_ = std::jthread([this](std::stop_token stop) { (void)syncer_->Run(std::move(stop)); });
}

void PolicyNode::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

Result<> PolicyNode::Attach(const std::string& port, const std::string& uid,
                            const std::vector<IpAddress>& addresses) {
  const cni::PodAttachment attachment{
      .port = port, .uid = uid, .label = "pods/" + port + "/eth0", .epoch = ++epoch_, .addresses = addresses};
  KEELSON_RETURN_IF_ERROR(netns_.Run([&] { return cni::Attach(*kernel_, attachment); }));
  syncer_->Requested();
  return {};
}

Result<> PolicyNode::Detach(const std::string& port) {
  const std::string mine = "pods/" + port + "/eth0";
  auto detached = cni::Detach(*kernel_, [&](std::string_view label) { return label == mine; });
  return detached ? Result<>() : Error(Code::kInternal, detached.error().message);
}

Result<std::optional<nft::Ruleset>> PolicyNode::Found() { return kernel_->Read(dataplane::PolicyTable()); }

Result<nft::Ruleset> PolicyNode::Wanted() {
  KEELSON_ASSIGN_OR_RETURN(const auto found, Found());
  const policy::Attachments attachments = found ? policy::AttachmentsOf(*found) : policy::Attachments();
  MutexLock lock(mutex_);
  return policy::MakePlan(plan_.cluster(), node_, attachments).rules;
}

std::string PolicyNode::Difference() {
  auto wanted = Wanted();
  auto found = Found();
  if (!wanted || !found) return (wanted ? found.error() : wanted.error()).message();
  const nft::Transaction difference = nft::Diff(*found, *wanted);
  return difference.empty() ? "" : nft::ToText(difference);
}

Result<> PolicyNode::Tamper(const nft::Transaction& transaction) { return kernel_->Apply(transaction); }

}  // namespace keelson::policies
