#include "controlplane/etcd_events.h"

#include <thread>

#include "lib/base/log.h"
#include "lib/client/events.h"

namespace keelson::controlplane {
namespace {

corev1::ObjectReference About() {
  corev1::ObjectReference about;
  about.set_api_version("v1");
  about.set_kind("Namespace");
  about.set_name("kube-system");
  about.set_namespace_("kube-system");
  return about;
}

void Log(const etcd::AlarmNews& news) {
  if (news.warning) return log::Error("etcd needs attention", {{"what", news.message}});
  log::Info("etcd has recovered", {{"what", news.message}});
}

}  // namespace

void AddEtcdEvents(ServiceGroup& group, etcd::AlarmFollower& alarms, std::shared_ptr<client::Transport> api) {
  auto run = [&alarms, api = std::move(api)](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
    ready();
    client::EventRecorder events(client::RestClient(api), "kube-apiserver");
    std::jthread sending([&events](std::stop_token own) { events.Run(own); });
    const corev1::ObjectReference about = About();
    alarms.Run(
        [&](const etcd::AlarmNews& news) {
          Log(news);
          events.Record(about, news.warning ? "Warning" : "Normal", news.reason, news.message);
        },
        Clock::Real(), stop);
    return {};
  };
  group.Add({"etcd-alarms", {"apiserver"}, std::move(run)});
}

}  // namespace keelson::controlplane
