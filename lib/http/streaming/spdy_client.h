// A connection of a SPDY client, with calls that block. Internal to lib/http/streaming.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/mutex.h"
#include "lib/http/client/client.h"
#include "lib/http/streaming/spdy.h"
#include "lib/http/streaming/streaming_client.h"

namespace keelson::http {

class SpdyClient {
 public:
  // Asks for an upgrade to SPDY/3.1 with this X-Stream-Protocol-Version.
  static Result<std::unique_ptr<SpdyClient>> Dial(const StreamingTarget& target, const char* protocol);

  // Before Pump(): asks for a stream, and returns its number.
  Result<uint32_t> Open(const Headers& headers);
  // Reads what has come, answers pings, and passes data on. One thread. False: the end of the connection.
  Result<bool> Pump(const std::function<void(uint32_t stream, std::string_view bytes, bool fin)>& on_data);
  // Any thread. Waits until the server has taken every stream, as it drops earlier data. An error: the connection is
  // over.
  Result<> Send(uint32_t stream, std::string_view bytes, bool fin);
  void Close();  // any thread; ends calls that block

 private:
  SpdyClient(std::unique_ptr<Client> client, std::unique_ptr<Stream> stream)
      : client_(std::move(client)), stream_(std::move(stream)) {}
  Result<> Write(std::string bytes);

  std::unique_ptr<Client> client_;
  std::unique_ptr<Stream> stream_;
  SpdyWriter writer_;
  uint32_t next_id_ = 1;
  Mutex write_mutex_;  // one write at a time
  Mutex mutex_;
  CondVar changed_;
  std::map<uint32_t, bool> open_ KEELSON_GUARDED_BY(mutex_);  // taken by the server
  bool closed_ KEELSON_GUARDED_BY(mutex_) = false;
  std::unique_ptr<SpdyParser> parser_;
  const std::function<void(uint32_t, std::string_view, bool)>* on_data_ = nullptr;  // while Pump() runs
  std::string answers_;                                                             // to pings
};

}  // namespace keelson::http
