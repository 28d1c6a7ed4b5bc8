// State that the sessions of one server share. Internal to lib/http/server.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/base/worker_pool.h"
#include "lib/event/loop.h"
#include "lib/http/channel.h"
#include "lib/http/server/server.h"
#include "lib/http/server/turns.h"

namespace keelson::http {

// A connection in any phase. Drain() and Abort() run on its loop.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual event::Loop& loop() = 0;
  virtual void Drain() = 0;  // end after the requests in progress
  virtual void Abort() = 0;  // end now
};

struct Origin {
  std::string remote_address;
  std::optional<crypto::PeerCertificate> peer;
  bool peer_refused = false;
};

// A body of a known length up to this one is read whole in any case, so that its request can be sent again.
constexpr uint64_t kShortBody = 64 << 10;

struct ServerCore {
  ServerCore(ServerOptions o, Handler h)
      : options(std::move(o)), handler(std::move(h)), pool(options.worker_threads) {}

  const ServerOptions options;
  const Handler handler;
  WorkerPool pool;
  std::atomic<bool> draining{false};

  Mutex mutex;
  CondVar changed;
  std::unordered_set<std::shared_ptr<Connection>> connections KEELSON_GUARDED_BY(mutex);
  std::map<const event::Loop*, std::shared_ptr<Turns>> turns KEELSON_GUARDED_BY(mutex);

  void Add(std::shared_ptr<Connection> connection) {
    MutexLock lock(mutex);
    connections.insert(std::move(connection));
  }
  void Remove(const std::shared_ptr<Connection>& connection) {
    MutexLock lock(mutex);
    connections.erase(connection);
    changed.notify_all();
  }
  std::vector<std::shared_ptr<Connection>> All() {
    MutexLock lock(mutex);
    return {connections.begin(), connections.end()};
  }
  // Those of one of the server's loops, which live as long as the server accepts connections.
  std::shared_ptr<Turns> TurnsOf(event::Loop& loop) {
    MutexLock lock(mutex);
    std::shared_ptr<Turns>& of_loop = turns[&loop];
    if (!of_loop) of_loop = std::make_shared<Turns>(loop);
    return of_loop;
  }
  void Dispatch(std::shared_ptr<const ServerRequest> request, std::shared_ptr<ResponseWriter> writer) {
    pool.Submit([this, request = std::move(request), writer = std::move(writer)] {
      if (!writer->closed()) handler(request, writer);
    });
  }
};

// Start HTTP on a connection after its handshake; on its loop.
void StartHttp1(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, Origin origin);
void StartHttp2(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, Origin origin);

// Sets path, query and the like from a request target. False: not an origin-form path.
bool SetTarget(ServerRequest& request, std::string_view target);

}  // namespace keelson::http
