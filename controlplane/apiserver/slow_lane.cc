#include "controlplane/apiserver/slow_lane.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "controlplane/apiserver/request_limits.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

// Definitions of most operators are smaller. A body of this size takes some 10 ms.
constexpr size_t kLarge = 64 << 10;
constexpr size_t kMostWaiting = 64 << 20;
// A tenth of the weight of other threads, if these are busy; so a large definition is late and never lost.
constexpr int kNicer = 10, kNicest = 19;

// Linux keeps a nice value for each thread. A thread without CAP_SYS_NICE cannot raise its priority again, so this one does
// nothing else.
void YieldToOthers() {
  thread_local bool lowered = false;
  if (std::exchange(lowered, true)) return;
  const auto thread = static_cast<id_t>(gettid());
  if (setpriority(PRIO_PROCESS, thread, std::min(kNicest, getpriority(PRIO_PROCESS, thread) + kNicer)) != 0) {
    log::Warn("Cannot lower the priority of a thread", {{"err", ErrnoError("setpriority")}});
  }
}

}  // namespace

bool SlowLane::Takes(const Context& context, const storage::Store& store) {
  const RequestInfo& info = context.info;
  if (info.group != "apiextensions.k8s.io" && info.group != "admissionregistration.k8s.io") return false;
  if (info.verb != "create" && info.verb != "update" && info.verb != "patch") return false;
  if (context.request->body.size() > kLarge) return true;
  if (info.name.empty()) return false;
  const api::ResourceInfo* main = api::FindResource(info.group, info.version, info.resource);
  const storage::ObjectPtr stored = main ? store.Peek(*main, info.name) : nullptr;
  return stored && stored->raw().size() > kLarge;
}

bool SlowLane::Submit(std::shared_ptr<Context> context, std::function<void()> handle,
                      std::function<void()> done) {
  const size_t bytes = std::max(context->request->body.size(), kLarge);
  if (waiting_bytes_.fetch_add(bytes) + bytes > kMostWaiting) {
    waiting_bytes_.fetch_sub(bytes);
    return false;
  }
  return pool_.Submit(
      [this, bytes, context = std::move(context), handle = std::move(handle), done = std::move(done)] {
        YieldToOthers();
        // As when a request leaves a queue of priority and fairness.
        if (context->writer->closed() || SteadyTime::clock::now() >= context->deadline) {
          ReplyTooManyRequests(*context);
        } else {
          handle();
        }
        waiting_bytes_.fetch_sub(bytes);
        done();
      });
}

}  // namespace keelson::apiserver
