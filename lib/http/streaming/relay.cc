#include "lib/http/streaming/relay.h"

#include <utility>

namespace keelson::http {
namespace {
constexpr size_t kHighWater = 128 << 10;
constexpr size_t kAnswersHighWater = 4 * kHighWater;  // limit for our own output to a side (pongs)
}  // namespace

Relay::Relay(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server) {
  legs_[kClient].stream = std::move(client);
  legs_[kServer].stream = std::move(server);
}

void Relay::Start() {
  MutexLock lock(mutex_);
  OnStart();
  Move();
}

// Starts every read and write that is possible. Streams never call back inside these calls.
void Relay::Move() {
  if (closed_) return;
  bool idle = true;
  for (Side side : {kClient, kServer}) {
    Leg& leg = legs_[side];
    if (!leg.writing && !leg.out.empty()) {
      leg.writing = true;
      leg.stream->AsyncWrite(std::exchange(leg.out, {}), [self = shared_from_this(), side](Result<> r) {
        self->WriteDone(side, std::move(r));
      });
    }
    // At the end, wait only for what the client still has to receive.
    if (side == kClient && leg.writing) idle = false;
  }
  if (ending_ && idle) {
    closed_ = true;
    for (Leg& leg : legs_) leg.stream->Close();
    return;
  }
  for (Side side : {kClient, kServer}) {
    Leg& leg = legs_[side];
    const Leg& other = legs_[side == kClient ? kServer : kClient];
    bool behind = other.out.size() >= kHighWater || leg.out.size() >= kAnswersHighWater;
    if (leg.reading || leg.ended || leg.held || behind || ending_) continue;
    leg.reading = true;
    leg.stream->AsyncRead([self = shared_from_this(), side](Result<std::string> bytes) {
      self->ReadDone(side, std::move(bytes));
    });
  }
}

void Relay::ReadDone(Side side, Result<std::string> bytes) {
  MutexLock lock(mutex_);
  legs_[side].reading = false;
  if (closed_) return;
  if (!bytes || bytes->empty()) legs_[side].ended = true;
  if (!ending_) {
    if (!bytes) {
      OnEnd(side, &bytes.error());
    } else if (bytes->empty()) {
      OnEnd(side, nullptr);
    } else {
      OnBytes(side, *bytes);
    }
  }
  Move();
}

void Relay::WriteDone(Side side, Result<> result) {
  MutexLock lock(mutex_);
  legs_[side].writing = false;
  if (closed_) return;
  if (!result) {
    legs_[side].out.clear();
    if (!ending_) OnEnd(side, &result.error());
    ending_ = true;
  }
  Move();
}

}  // namespace keelson::http
