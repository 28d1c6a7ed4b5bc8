#include "controlplane/storage/watch_cache_metrics.h"

#include <string>
#include <vector>

#include "lib/base/log.h"

namespace keelson::storage {
namespace {

using metrics::Family;
using Labels = std::vector<std::string>;

const Labels kNames = {"group", "resource"};

Family& Count(const char* name, const char* help) { return metrics::Counter(name, help, kNames); }

Family& received_total =
    Count("apiserver_watch_cache_events_received_total", "Counter of events received in watch cache.");
Family& dispatched_total =
    Count("apiserver_watch_cache_events_dispatched_total", "Counter of events dispatched in watch cache.");
Family& initial_total =
    Count("apiserver_init_events_total", "Counter of init events processed in watch cache.");
Family& initializations_total = Count("apiserver_watch_cache_initializations_total",
                                      "Counter of watch cache initializations, by resource.");
Family& revisions = metrics::Gauge("apiserver_watch_cache_resource_version",
                                   "Current resource version of watch cache, by resource.", kNames);
Family& capacities =
    metrics::Gauge("watch_cache_capacity", "Total capacity of watch cache, by resource.", kNames);
const Labels kByIndex = {"group", "index", "resource"};
Family& cache_lists = metrics::Counter("apiserver_cache_list_total",
                                       "Number of LIST requests served from watch cache", kByIndex);
Family& cache_fetched = metrics::Counter("apiserver_cache_list_fetched_objects_total",
                                         "Number of objects read from watch cache in the course of serving "
                                         "a LIST request",
                                         kByIndex);
Family& cache_returned = Count("apiserver_cache_list_returned_objects_total",
                               "Number of objects returned for a LIST request from watch cache");
Family& storage_events =
    Count("apiserver_storage_events_received_total", "Number of etcd events received, by resource.");
Family& decode_errors =
    Count("apiserver_storage_decode_errors_total", "Number of stored object decode errors, by resource.");
Family& storage_lists = Count("apiserver_storage_list_total", "Number of LIST requests served from storage");
Family& storage_fetched =
    Count("apiserver_storage_list_fetched_objects_total",
          "Number of objects read from storage in the course of serving a LIST request");
Family& storage_evaluated =
    Count("apiserver_storage_list_evaluated_objects_total",
          "Number of objects tested in the course of serving a LIST request from storage");
Family& storage_returned = Count("apiserver_storage_list_returned_objects_total",
                                 "Number of objects returned for a LIST request from storage");
Family& consistent_reads = metrics::Counter("apiserver_watch_cache_consistent_read_total",
                                            "Counter for consistent reads from cache.",
                                            {"group", "resource", "success", "fallback"});
Family& read_waits =
    metrics::Histograms("apiserver_watch_cache_read_wait_seconds",
                        "Histogram of time spent waiting for a watch cache to become fresh.",
                        {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3}, kNames);
Family& database_size = metrics::Gauge("apiserver_storage_size_bytes",
                                       "Size of the storage database file physically allocated in bytes.",
                                       {"storage_cluster_id"});

Labels Of(const api::ResourceInfo& info) { return {std::string(info.group), std::string(info.resource)}; }
Labels ByIndex(const api::ResourceInfo& info) {
  return {std::string(info.group), "", std::string(info.resource)};
}

}  // namespace

WatchCacheMetrics::WatchCacheMetrics(const api::ResourceInfo& info, size_t capacity)
    : received(received_total.With(Of(info))),
      dispatched(dispatched_total.With(Of(info))),
      initial(initial_total.With(Of(info))),
      initializations(initializations_total.With(Of(info))),
      revision(revisions.With(Of(info))),
      lists(cache_lists.With(ByIndex(info))),
      list_fetched(cache_fetched.With(ByIndex(info))),
      list_returned(cache_returned.With(Of(info))) {
  capacities.With(Of(info)).Set(static_cast<double>(capacity));
}

void CountStorageEvent(const api::ResourceInfo& info) { storage_events.With(Of(info)).Increment(); }
void CountDecodeError(const api::ResourceInfo& info) { decode_errors.With(Of(info)).Increment(); }

StorageList::~StorageList() {
  const Labels labels = Of(info);
  storage_lists.With(labels).Increment();
  storage_fetched.With(labels).Add(static_cast<double>(fetched));
  storage_evaluated.With(labels).Add(static_cast<double>(evaluated));
  storage_returned.With(labels).Add(static_cast<double>(returned));
}

void CountConsistentRead(const api::ResourceInfo& info, bool good) {
  consistent_reads
      .With({std::string(info.group), std::string(info.resource), good ? "true" : "false", "false"})
      .Increment();
}

void ObserveReadWait(const api::ResourceInfo& info, std::chrono::duration<double> waited) {
  read_waits.HistogramWith(Of(info)).Observe(waited.count());
}

void TellDatabaseSize(const std::shared_ptr<etcd::Client>& client) {
  metrics::OnCollect([known = std::weak_ptr<etcd::Client>(client)] {
    const std::shared_ptr<etcd::Client> living = known.lock();
    if (!living) return;
    constexpr std::chrono::seconds kPatience{2};
    Result<etcd::ServerStatus> status = living->Status({SteadyTime::clock::now() + kPatience, {}});
    if (status) return database_size.With({"etcd-0"}).Set(static_cast<double>(status->db_size));
    // Without an answer there is no size: an old one would be misleading.
    database_size.Clear();
    log::Warn("Cannot ask for the size of etcd's database", {{"err", status.error()}});
  });
}

}  // namespace keelson::storage
