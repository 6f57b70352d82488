// Recurrent decoders that look at every step, a step at a time with any selection: what attentive_gru() and
// attentive_lstm() do for the softmax in one op. Slower, and right for everything that DecoderAttention takes.
#pragma once

#include "nn/decoder_attention.h"

namespace fovea::nn {

// As attentive_gru().
AttentiveStates attentive_gru_by_steps(const AttentiveGru& decoder, const KeyRuns& runs,
                                       const DecoderAttention& attention, Context& context,
                                       bool want_weights = false);

// As attentive_lstm(); predicted places narrow the runs.
FedStates attentive_lstm_by_steps(const AttentiveLstm& decoder, KeyRuns& runs,
                                  const DecoderAttention& attention, Context& context,
                                  bool want_weights = false);

}  // namespace fovea::nn
