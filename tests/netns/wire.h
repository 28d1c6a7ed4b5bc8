// Requests and responses over TCP, UDP and SCTP between network namespaces: who answers, and which client
// address it sees.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/linux/netns.h"

namespace keelson::netns {

// True when the protocol can be tested. SCTP (sctp_wire.h) only if the kernel's own SCTP is not loaded.
bool Speaks(uint8_t protocol);

// Answers "NAME CLIENT-IP\n" on `port` of every address in `netns`, over TCP, UDP and SCTP. TCP connections stay open and echo.
class Responder {
 public:
  Responder(std::string name, const linux::NetNs& netns, uint16_t port);
  ~Responder();

 private:
  void Serve(std::stop_token stop);
  void Watch(const UniqueFd& fd);
  void Accept();
  void Echo(int fd);
  void AnswerDatagram(int fd) const;
  const std::string name_;
  const uint16_t port_;
  UniqueFd epoll_, datagrams_, listener_;
  std::vector<UniqueFd> raw_;
  std::unordered_map<int, UniqueFd> peers_;
  std::jthread thread_;
};

struct Answer {
  std::string server, seen_as;
};

struct Question {
  uint8_t protocol = 6;
  std::optional<IpAddress> source;  // empty: by routing
  IpAddress to;
  uint16_t port = 0;
  std::chrono::milliseconds limit{2000};
};

// Errors carry errno: ECONNREFUSED, or ETIMEDOUT after the limit.
Result<Answer> Ask(const linux::NetNs& from, const Question& question);

// A long-lived TCP connection.
class Conversation {
 public:
  static Result<Conversation> Open(const linux::NetNs& from, const Question& question);
  const Answer& answer() const { return answer_; }
  bool Echoes() { return Says() && Hears(); }  // alive in both directions
  bool Says();
  bool Hears();   // reads the echo
  void Reset();   // ends immediately for both sides and for connection tracking
  void Vanish();  // ends silently, so that connection tracking still considers it open

 private:
  UniqueFd fd_;
  Answer answer_;
};

}  // namespace keelson::netns
