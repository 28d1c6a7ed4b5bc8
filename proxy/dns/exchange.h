// One question to one server: over UDP from a new port with a random id, over TCP when the answer is truncated.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "lib/event/loop.h"
#include "proxy/dns/message/stored_answer.h"
#include "proxy/dns/udp_server.h"

namespace keelson::proxy::dns {

// For the loop's thread only. The destructor ends the exchange without a call of `done`.
class Exchange {
 public:
  using Done = std::function<void(Result<StoredAnswer>)>;
  // Calls `done` once, never within this call: with the answer, kTimeout, or the error of the socket.
  static std::unique_ptr<Exchange> Start(event::Loop& loop, const Listen& server, Question question,
                                         std::chrono::milliseconds timeout, Done done);
  ~Exchange();

 private:
  Exchange(event::Loop& loop, const Listen& server, Question question, Done done);
  void Fail(Error error);
  void Finish(Result<StoredAnswer> result);
  Result<> Open(int type);
  void SendUdp();
  void AwaitUdp();
  void ReadUdp();
  void ConnectTcp();
  void WriteTcp();
  void ReadTcp();

  event::Loop& loop_;
  const Listen server_;
  const Question question_;
  Done done_;
  const uint16_t id_;
  UniqueFd fd_;
  std::unique_ptr<event::FdWatch> watch_;
  event::Timer timer_, soon_;
  std::string out_, in_;
};

}  // namespace keelson::proxy::dns
