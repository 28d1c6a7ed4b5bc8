#include "controlplane/apiserver/resource_metrics/scraper.h"

#include <algorithm>
#include <thread>

#include "lib/api/types.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kThreads = 16;
constexpr std::chrono::seconds kPatience{5};
// Enough for a thousand containers.
constexpr size_t kMaxBody = 8u << 20;

// The node lifecycle controller considers the node lost: waiting for it would delay the others.
bool IsSilent(const corev1::Node& node) {
  for (const corev1::NodeCondition& condition : node.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "Unknown";
  }
  return false;
}

}  // namespace

void UsageScraper::Run(std::stop_token stop) {
  Mutex mutex;
  CondVar never;
  for (SteadyTime next = SteadyTime::clock::now(); !stop.stop_requested();) {
    Round(stop);
    next =
        std::max(next + std::chrono::duration_cast<SteadyTime::duration>(period_), SteadyTime::clock::now());
    MutexLock lock(mutex);
    never.wait_until(mutex, stop, next, [] { return false; });
  }
}

std::vector<std::string> UsageScraper::NodesToAsk() const {
  std::vector<std::string> out;
  store_.ForEach(api::ResourceOf<corev1::Node>(), [&out](const storage::ObjectPtr& object) {
    if (!IsSilent(static_cast<const corev1::Node&>(*object->Decode()))) out.emplace_back(object->name());
  });
  return out;
}

// Moves failing nodes to the end in random order, so that they delay no others; returns the number of the
// rest.
size_t UsageScraper::PutFailingLast(std::vector<std::string>& nodes) {
  MutexLock lock(mutex_);
  auto failing = std::stable_partition(nodes.begin(), nodes.end(),
                                       [this](const std::string& node)
                                           KEELSON_REQUIRES(mutex_) { return !failing_.count(node); });
  std::shuffle(failing, nodes.end(), dice_);
  return static_cast<size_t>(failing - nodes.begin());
}

void UsageScraper::Round(std::stop_token stop) {
  const SteadyTime end = SteadyTime::clock::now() + std::chrono::duration_cast<SteadyTime::duration>(period_);
  std::vector<std::string> nodes = NodesToAsk();
  const std::set<std::string> now(nodes.begin(), nodes.end());
  for (const std::string& node : asked_) {
    if (now.count(node)) continue;
    usage_.Remove(node);
    MutexLock lock(mutex_);
    failing_.erase(node);
  }
  asked_ = now;
  const size_t good = PutFailingLast(nodes);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; !stop.stop_requested() && (i = next.fetch_add(1)) < nodes.size();) {
      if (i >= good && SteadyTime::clock::now() > end) return;
      AskOne(nodes[i], stop);
    }
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min(nodes.size(), kThreads); ++i) others.emplace_back(work);
  work();
}

void UsageScraper::AskOne(const std::string& node, std::stop_token stop) {
  Result<UsageSample> sample = Ask(node, stop);
  if (stop.stop_requested()) return;
  if (sample) {
    usage_.Put(node, std::move(*sample));
    MutexLock lock(mutex_);
    failing_.erase(node);
    return;
  }
  usage_.Remove(node);
  MutexLock lock(mutex_);
  if (failing_.insert(node).second) {
    log::Warn("Cannot learn what a node uses", {{"node", node}, {"err", sample.error()}});
  }
}

Result<UsageSample> UsageScraper::Ask(const std::string& node, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<http::Client> kubelet, backends_.Kubelet(node));
  http::ClientRequest request;
  request.target = "/metrics/resource";
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::ResponseReader> reader,
                           kubelet->Open(request, kPatience, stop));
  std::string body;
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(std::string piece, reader->Read(stop, kPatience));
    if (piece.empty()) break;
    body += piece;
    if (body.size() > kMaxBody) return Error(Code::kTooLarge, "more than is believed of one node");
  }
  if (reader->status() != 200) {
    return Error(CodeOf(reader->status(), ""),
                 "status " + std::to_string(reader->status()) + ": " + body.substr(0, 256));
  }
  KEELSON_ASSIGN_OR_RETURN(UsageSample sample, ParseResourceMetrics(body, Clock::Real().Now()));
  // Bounded by the number of nodes.
  const api::ResourceInfo& pods = api::ResourceOf<corev1::Pod>();
  std::erase_if(sample.pods, [&](const auto& entry) { return !store_.Peek(pods, entry.first); });
  return sample;
}

}  // namespace keelson::apiserver
